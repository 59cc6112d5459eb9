"""The parameters of a machine: measured on this one, and kept in a file."""

import json
import statistics
from pathlib import Path
from typing import Any

from simulator.programs import call, real, simulated

HERE = Path(__file__).parent
MEASURED = HERE / "machine.json"  # the machine of the figures in the documentation
FLOPS = (0, 1, 100, 1_000, 10_000, 100_000)
ROWS = (1, 16, 100, 512)
ALL_AT_MOST = 1_000_000  # operations of a batch, for which a cost is measured

# One worker's runs with as little work as can be, on several paths, and two workers' run.
ALONE: tuple[dict[str, Any], ...] = (
    {"stages": "ordered", "rows": 1},
    {"stages": "shared", "rows": 1},
    {"stages": "chained", "rows": 16},
    {"shape": "wide", "rows": 1_000},
)
TOGETHER: dict[str, Any] = {"stages": "shared", "rows": 16, "lanes": 2}


def measure(rounds: int = 7) -> dict[str, Any]:
    """Measure this machine, and fit what cannot be measured alone.

    Three parameters are fitted: what the code around an atomic operation takes, what a line from
    the second cache costs beside other work, and the part of a line's way from the other core that
    a load waits for.
    """
    wanted = [f"{f}:{r}" for f in FLOPS for r in ROWS if f * r <= ALL_AT_MOST]
    (machine,) = call("parameters", wanted)
    machine |= {"far_ns": 3 * machine["near_ns"], "time_slice_ns": 3e6, "exposed": 1.0}
    fit_alone(machine, rounds)
    machine["kept_ns"] = round(kept(machine), 1)
    fit_together(machine, rounds)
    return machine


def took(options: dict[str, Any], key: str, rounds: int) -> float:
    """Return nanoseconds of a round on real threads, the median of some runs."""
    return float(statistics.median(1e9 * real(**options)[key] / 2_000 for _ in range(rounds)))


def fit_alone(machine: dict[str, Any], rounds: int) -> None:
    """Fit two costs by least squares of the relative errors."""
    machine |= {"instructions_ns": 0.0, "in_second_cache_ns": machine["second_cache_ns"]}
    machine["second_cache_ns"] = 0.0
    rows = []
    for options in ALONE:
        options = {"flops": 1, "lanes": 1, "rounds": 2_000, **options}
        want = took(options, "cpu", rounds)
        got = simulated(machine, **options)
        rest = want - 1e9 * got["cpu"] / 2_000
        rows.append((got["operations"] / 2_000 / want, got["cold"] / 2_000 / want, rest / want))
    a, b, c, d, e = (
        sum(row[i] * row[j] for row in rows) for i, j in ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2))
    )
    machine["instructions_ns"] = round(max(0.1, (d * c - b * e) / (a * c - b * b)), 3)
    machine["second_cache_ns"] = round(max(0.0, (a * e - b * d) / (a * c - b * b)), 3)


def fit_together(machine: dict[str, Any], rounds: int) -> None:
    options = {"flops": 1, "rounds": 2_000, **TOGETHER}
    want = took(options, "seconds", rounds)
    least, most = 0.0, 1.0
    for _ in range(8):
        machine["exposed"] = (least + most) / 2
        if 1e9 * simulated(machine, **options)["seconds"] / 2_000 > want:
            most = machine["exposed"]
        else:
            least = machine["exposed"]


def kept(machine: dict[str, Any]) -> float:
    """Find for how long a core can use a line that another one wants.

    Of two threads that add to a word, each has the line for a while: in the time of one move, so
    many additions.
    """
    addition = machine["update_ns"] + machine["instructions_ns"]
    in_a_move = 2 * machine["near_ns"] / machine["contended_update_ns"]
    return float(min(max(0.0, in_a_move - 1) * addition, machine["near_ns"]))


def load(path: Path = MEASURED) -> dict[str, Any]:
    machine: dict[str, Any] = json.loads(path.read_text())
    return machine


def save(machine: dict[str, Any], path: Path = MEASURED) -> None:
    values = {**machine, "costs": [f"@{i}" for i in range(len(machine["costs"]))]}
    text = json.dumps(values, indent=1)
    for i, cost in enumerate(machine["costs"]):
        text = text.replace(f'"@{i}"', json.dumps(cost))  # a line for each
    path.write_text(text + "\n")
