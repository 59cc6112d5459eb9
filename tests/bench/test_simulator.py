"""The simulator: laws that hold for every scheduler, on a machine whose work takes known times."""

from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
NOTHING = {
    **dict.fromkeys(("update_ns", "second_cache_ns", "near_ns", "kept_ns"), 0),
    "exposed": 1,
    **dict.fromkeys(("far_ns", "row_line_ns", "clock_ns", "wake_ns", "woken_ns", "switch_ns"), 0),
    "instructions_ns": 1,  # or a worker that looks for work would never come to its end
}
COSTS = [
    {"flops": 0, "rows": 100, "ns": [0]},
    {"flops": 1, "rows": 100, "ns": [9_000, 10_000, 11_000]},
]
FREE = {**NOTHING, "costs": COSTS}  # hardly anything but work takes time
COSTLY = {"costs": COSTS}  # with what machine.hpp assumes
ROUNDS = 2_000  # many times the window, by which a run's ends may differ
MODELS = ("manual", "dynamic", "dedicated")
STAGES = ("chained", "shared", "ordered")
SHAPES = ("pipeline", "wide", "mixed")


@pytest.fixture(autouse=True)
def bench_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HERE))


def run(machine: dict[str, Any], **options: object) -> dict[str, Any]:
    from simulator.programs import simulated

    small = {"operators": 40, "rows": 100, "rounds": ROUNDS, "window": 16, "cores": 64}
    return simulated(machine, **(small | options))


def test_parameters_are_measured() -> None:
    from simulator.programs import call

    (machine,) = call("parameters", ["1:1"])
    assert machine["near_ns"] > 0
    assert machine["clock_ns"] > 0
    [cost] = machine["costs"]
    assert (cost["flops"], cost["rows"], len(cost["ns"])) == (1, 1, 20)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("stages", STAGES)
def test_the_work_done_is_the_sum_of_what_was_drawn(shape: str, model: str, stages: str) -> None:
    got = run(FREE, shape=shape, model=model, stages=stages, lanes=3)
    rows = ROUNDS * (1 if shape == "wide" else 40 if shape == "pipeline" else 4)
    assert got["work"] * got["seconds"] == pytest.approx(rows * 1e-5, rel=0.02)


@pytest.mark.parametrize("stages", STAGES)
def test_one_worker_takes_the_sum_of_all_costs(stages: str) -> None:
    got = run(FREE, stages=stages, lanes=1)
    assert got["seconds"] == pytest.approx(ROUNDS * 40 * 1e-5, rel=0.01)
    assert got["busy"] == pytest.approx(1, rel=0.01)


def test_a_manual_graph_takes_the_sum_of_all_costs() -> None:
    assert run(FREE, model="manual")["seconds"] == pytest.approx(ROUNDS * 40 * 1e-5, rel=0.01)


@pytest.mark.parametrize("lanes", [2, 8, 32])
def test_work_that_costs_nothing_to_share_is_shared_by_all_workers(lanes: int) -> None:
    got = run(FREE, stages="shared", lanes=lanes, rounds=8_000, window=256)
    assert got["seconds"] == pytest.approx(8_000 * 40 * 1e-5 / lanes, rel=0.04)


@pytest.mark.parametrize("lanes", [1, 4, 16])
def test_no_machine_does_more_than_its_cores(lanes: int) -> None:
    for cores in (1, 2, 5):
        got = run(COSTLY, lanes=lanes, cores=cores, stages="shared")
        assert got["work"] <= min(lanes, cores)
        assert got["busy"] + got["sender"] <= cores * 1.01


def test_what_one_worker_at_a_time_may_do_is_not_done_by_two() -> None:
    got = run(FREE, operators=1, stages="ordered", lanes=8)
    assert got["work"] <= 1.001


def test_a_seed_repeats_a_run_and_another_one_does_not() -> None:
    options = {"lanes": 7, "stages": "shared", "shape": "mixed"}
    first = run(COSTLY, seed=1, **options)
    assert run(COSTLY, seed=1, **options) == first
    assert run(COSTLY, seed=2, **options) != first


@pytest.mark.parametrize("dearer", ["near_ns", "update_ns", "instructions_ns"])
def test_dearer_cache_lines_take_longer(dearer: str) -> None:
    cheap, dear = (
        run({**FREE, dearer: ns}, lanes=8, stages="shared")["seconds"] for ns in (10, 10_000)
    )
    assert dear > cheap


def test_with_the_interpreters_lock_workers_take_turns() -> None:
    got = run(FREE, lanes=8, stages="shared", lock=1)
    assert got["work"] == pytest.approx(1, rel=0.01)


@pytest.mark.parametrize("cores", [1, 3])
def test_threads_beyond_the_cores_take_turns(cores: int) -> None:
    got = run({**FREE, "slice_ns": 100_000}, lanes=6, cores=cores, stages="shared")
    assert got["switches"] > 0
    assert got["busy"] + got["sender"] == pytest.approx(cores, rel=0.01)


def test_workers_that_meet_at_short_operators_do_not_slow_each_other_down() -> None:
    short = {**COSTLY, "costs": [{"flops": f, "rows": 100, "ns": [50]} for f in (0, 1)]}
    few, many = (
        run(short, operators=200, window=256, cores=65, lanes=lanes)["seconds"] for lanes in (4, 32)
    )
    assert many < few / 2  # a convoy at a ring's head made 32 slower than 4


@pytest.mark.parametrize("lanes", [16, 100])
def test_more_lanes_than_a_word_has_bits_all_work(lanes: int) -> None:
    got = run(FREE, stages="shared", lanes=lanes, cores=256, window=256, rounds=4_000)
    assert got["work"] > 0.9 * lanes


def test_a_level_that_changes_is_that_of_the_lanes_that_work() -> None:
    from simulator.programs import simulated_periods

    levels = [1, 8, 3]
    graph = {"operators": 40, "rows": 100, "stages": "shared", "window": 64, "lanes": 8}
    periods = simulated_periods(FREE, levels, **graph, cores=64, period=1e7)
    busy = [period["busy"] for period in periods]
    assert busy == pytest.approx([8, *levels], rel=0.1)
    done = [sum(stage[0] for stage in period["stages"]) for period in periods]
    # Lanes that leave end the rounds that they have begun: those count in the period after.
    assert done == pytest.approx([level * 1e5 for level in (8, *levels)], rel=0.15)


def test_two_uneven_operators_divide_the_workers_by_their_costs() -> None:
    from simulator.elastic import uneven

    got = uneven(FREE)
    assert got["work"] > 0.98 * 126  # hardly a worker was idle, though the second began late
    at_first, at_second = (
        sum(sample[place] for sample in got["samples"][120:]) for place in (1, 2)
    )
    assert at_first / (at_first + at_second) == pytest.approx(0.17 / 0.38, rel=0.1)


@pytest.mark.parametrize(
    ("word", "error"),
    [("policy=best", "no policy: best"), ("flops=7", "no cost was measured of 7 operations")],
)
def test_a_wrong_option_is_an_error(word: str, error: str) -> None:
    key, value = word.split("=")
    with pytest.raises(RuntimeError, match=error):
        run(FREE, **{key: value})


def test_a_word_that_is_no_option_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    from simulate import main

    with pytest.raises(SystemExit):
        main(["predict", "lanes"])
    assert "not OPTION=VALUE: lanes" in capsys.readouterr().err
