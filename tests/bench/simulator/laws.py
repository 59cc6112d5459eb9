"""Laws that hold for every scheduler, on a machine whose work takes known times."""

from typing import Any

from simulator.programs import simulated

COSTS = [
    {"flops": 0, "rows": 100, "ns": [0]},
    {"flops": 1, "rows": 100, "ns": [9_000, 10_000, 11_000]},
]
ZERO = (
    *("update_ns", "second_cache_ns", "near_ns", "kept_ns", "far_ns", "row_line_ns", "clock_ns"),
    *("wake_ns", "woken_ns", "switch_ns"),
)
# Hardly anything but work takes time. A look for work takes some, or it would never end.
FREE = {**dict.fromkeys(ZERO, 0), "exposed": 1, "instructions_ns": 1, "costs": COSTS}
COSTLY = {"costs": COSTS}  # with what machine.hpp assumes
ROUNDS = 2_000  # many times the window, by which a run's ends may differ
WORK = 40 * 1e-5  # seconds of a round


def run(machine: dict[str, Any], **options: object) -> dict[str, Any]:
    small = {"operators": 40, "rows": 100, "rounds": ROUNDS, "window": 16, "cores": 64}
    return simulated(machine, **(small | options))


def hold(law: str, got: float, expected: float, error: float) -> None:
    if abs(got / expected - 1) > error:
        raise RuntimeError(f"{law}: expected {expected}, got {got}")
    print(f"holds: {law}")


def check() -> None:
    """Raise an error if a law does not hold."""
    for model in ("manual", "dynamic", "dedicated"):
        got = run(FREE, model=model, lanes=3)
        hold(f"{model}: all work is done", got["work"] * got["seconds"], ROUNDS * WORK, 0.02)
    for stages in ("chained", "shared", "ordered"):
        got = run(FREE, stages=stages, lanes=1)
        law = f"{stages}: one worker takes the sum of all costs"
        hold(law, got["seconds"], ROUNDS * WORK, 0.01)
    for lanes in (8, 32, 100):
        got = run(FREE, stages="shared", lanes=lanes, rounds=8_000, window=256, cores=256)
        hold(f"{lanes} workers share all work", got["seconds"], 8_000 * WORK / lanes, 0.1)
    got = run(COSTLY, lanes=16, cores=2, stages="shared")
    hold("two cores are busy, and no more", got["busy"] + got["sender"], 2, 0.01)
    options = {"lanes": 7, "stages": "shared", "shape": "mixed", "seed": 1}
    if run(COSTLY, **options) != run(COSTLY, **options):
        raise RuntimeError("a seed does not repeat a run")
    print("holds: a seed repeats a run")
