"""The harness: its results, and its reports of programs without one."""

import json
import os
import select
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("bench_modules")


def check_result(module: str, n: int, host: str = "none", /, **options: Any) -> None:
    """Run a benchmark's module and check its result."""
    import one

    result = one.play(module, host, n, options)
    assert result.got == result.want


def sample_of(program: str) -> SimpleNamespace:
    """Run a Python program as a competitor."""
    from competitor import Competitor

    sample = Competitor("it", "python", "peer", [sys.executable, "-c", program]).run()
    return SimpleNamespace(**vars(sample))


def printing(**line: object) -> str:
    return f"print({json.dumps(json.dumps(line))})"


def test_a_right_result_is_a_rate() -> None:
    sample = sample_of(printing(operations=30, seconds=2.0, got=[1], want=[1]))
    assert sample.value == 15
    assert not sample.error


def test_a_wrong_result_is_an_error_however_fast_it_came() -> None:
    sample = sample_of(printing(operations=30, seconds=0.001, got=29, want=30))
    assert sample.value is None
    assert sample.error == "wrong result: got 29, want 30"


def test_a_program_that_fails_is_an_error_with_its_last_words() -> None:
    sample = sample_of("raise SystemExit('no such ring')")
    assert sample.error == "exit status 1: no such ring"


def test_a_program_that_is_not_there_is_an_error() -> None:
    from competitor import Competitor

    sample = Competitor("it", "native", "peer", ["/no/such/program"]).run()
    assert "/no/such/program" in sample.error


def test_child_processes_end_with_their_program(tmp_path: Path) -> None:
    from competitor import session_of

    pipe = tmp_path / "pipe"  # it has a writer for as long as the child lives
    os.mkfifo(pipe)
    child = f"import signal; held = open({str(pipe)!r}, 'w'); print(flush=True); signal.pause()"
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with session_of([sys.executable, "-c", program]) as process:
        assert process.stdout is not None
        assert process.stdout.readline()  # the child has begun
    ended = select.poll()
    ended.register(reader, select.POLLHUP)
    assert ended.poll(30_000)
    os.close(reader)


def test_a_library_that_is_not_installed_is_absent_and_no_error() -> None:
    sample = sample_of(printing(absent="pykka"))
    assert sample.absent == "pykka is not installed"
    assert not sample.error


def test_a_tool_that_is_not_installed_is_named() -> None:
    from peers import Program, cxx

    assert Program("x.f90", ("no-such-compiler",), ()).missing() == (
        "no-such-compiler is not installed"
    )
    assert cxx("x.cpp", header="no/such/header.hpp").missing() == (
        "no/such/header.hpp is not installed"
    )


def absent(what: str) -> object:
    from competitor import Sample, Score

    return Score([Sample(absent=f"{what} is not installed")])


def scores(*values: float) -> object:
    from competitor import Sample, Score

    return Score([Sample(value) for value in values])


def test_a_ratio_is_the_median_of_the_rounds_ratios() -> None:
    # The machine was ten times slower in the second round, for both.
    assert scores(100, 10, 90).over(scores(50, 5, 30)) == 2  # type: ignore[attr-defined]


def test_a_benchmark_without_a_result_has_no_ratio() -> None:
    import report

    assert report.ratio(scores(12, 0), scores(0, 3)) == ""  # type: ignore[arg-type]
    assert report.ratio(scores(12, 0), scores(6, 3)) == "2"  # type: ignore[arg-type]


def test_a_target_says_what_was_measured_and_whether_it_was_met() -> None:
    import judging

    results = {"ping_pong": {"callboard": scores(20.0), "bare method call": scores(30.0)}}
    results["ask"] = {"callboard": scores(9.0), "two threads, two queues": absent("queues")}
    verdicts = {each.text: each for each in judging.judge(results)}  # type: ignore[arg-type]
    met = verdicts["Python ping-pong against a bare call"]
    assert met.measured == pytest.approx(2 / 3)
    assert met.met
    unknown = verdicts["Ask against two threads and two queues"]
    assert unknown.met is None
    assert unknown.note == "two threads, two queues: queues is not installed"
    assert "Python thread ring against a bare call" not in verdicts  # it was not run


def test_two_workers_are_held_against_one_against_go_and_against_the_best_by_hand() -> None:
    import judging

    native = "callboard, native"
    results = {
        "workers_pairs": {
            native: scores(40, 44, 42),
            f"{native}, 2 workers": scores(72, 88, 63),
            f"{native}, 2 workers, placed well": scores(80, 80, 84),
            f"{native}, 2 workers, placed badly": scores(5, 5, 5),
            "Go, 2 workers": scores(10, 11, 9),
        }
    }
    verdicts = {each.text: each for each in judging.judge(results)}  # type: ignore[arg-type]
    two = "8 pairs, native: 2 workers"
    measured = {
        text.removeprefix(two): (each.measured, each.met)
        for text, each in verdicts.items()
        if each.measured is not None
    }
    assert measured == {
        " against 1": (1.8, True),
        ", against Go's 2": (pytest.approx(7.2), True),
        ", against the best by hand": (0.9, True),
    }
    assert verdicts["8 pairs, Python: 2 workers against 1"].met is None


def test_a_group_is_the_benchmarks_in_it_each_once() -> None:
    import run

    asked = run.parse(["--only", "workers_ring", "workers", "idle"]).only
    names = run.chosen(asked)
    assert names[0] == "workers_ring"
    assert sorted(names) == sorted(run.GROUPS["workers"])


def test_a_smoke_run_is_played_by_few_and_by_every_peer_in_its_turn() -> None:
    import run
    from competitor import Competitor

    ours = [Competitor(f"ours {i}", "python", "ours", ()) for i in range(3)]
    peers = [Competitor(f"peer {i}", "python", "peer", ()) for i in range(3)]
    absent = Competitor("absent", "native", "peer", (), "it is not installed")
    floor = Competitor("floor", "python", "floor", ())
    played = [run.few([*ours, absent, *peers, floor], turn) for turn in range(6)]
    assert played == [[ours[0], ours[2], peers[turn % 3], floor] for turn in range(6)]
    assert run.few([absent], 1) == []
    assert run.few(ours[:1], 1) == ours[:1]


def test_a_threading_model_is_named_only_if_it_was_asked_for() -> None:
    from stream_suite import Plan
    from workers_suite import WORKS

    def words(*models: str) -> dict[str, list[str]]:
        players = WORKS["ping_pong"].players(Plan(smoke=True, workers=[1, 2], models=models))
        return {each.name: list(each.command) for each in players}

    alone = words()
    assert not [word for word in alone["callboard, 2 workers"] if "threading" in word]
    assert "threading=dynamic" not in alone["callboard, 2 workers, placed well"]
    assert "threading=dynamic" in words("dynamic")["callboard, native, 2 workers, dynamic"]


def test_a_run_says_what_it_cost_or_else_its_process_did() -> None:
    spent = {"operations": 2_000_000, "seconds": 1.0, "got": 1, "want": 1}
    own = sample_of(printing(**spent, cpu=3.0, switches=5))
    assert (own.cpu, own.switches) == (1.5, 2.5)
    process = sample_of(f"sum(range(1_000_000)); {printing(**spent)}")
    assert process.cpu is not None
    assert process.cpu > 0


@pytest.mark.parametrize("host", ["callboard", "asyncio", "threads"])
@pytest.mark.parametrize(
    ("benchmark", "size"),
    [
        ("ping_pong", 1_000),
        ("thread_ring", 1_001),
        ("counting", 1_000),
        ("fork_join_throughput", 600),
        ("fork_join_create", 50),
        ("banking", 500),
        ("chameneos", 200),
        ("big", 3),
        ("bounded_buffer", 400),
        ("dictionary", 400),
        ("pipeline", 30),
    ],
)
def test_a_benchmark_of_actors_comes_out_right(benchmark: str, size: int, host: str) -> None:
    check_result(f"savina.{benchmark}", size, host)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("host", ["callboard", "native"])
def test_the_works_come_out_right_on_any_number_of_workers(host: str, workers: int) -> None:
    import players
    from workers_suite import WORKS

    if host == "native" and (why := players.built_actors()):
        pytest.skip(why)
    for work in WORKS.values():
        if work.part:
            check_result(work.module, 240, host, workers=workers, **work.options)


@pytest.mark.parametrize(
    ("benchmark", "size", "option", "values"),
    [
        ("python_pipeline", 1_000, "by", ["graph", "generators"]),
        ("sessions", 3_000, "by", ["ordered", "watermarks", "rare_watermarks", "end", "class"]),
        ("one_row", 5, "operators", [20]),
        ("to_sink", 5, "threading", ["dynamic", "manual", "dedicated", "assigned"]),
        ("start", 20, "phase", ["define", "start", "end"]),
    ],
)
def test_a_benchmark_of_streams_comes_out_right(
    benchmark: str, size: int, option: str, values: list[Any]
) -> None:
    for value in values:
        check_result(f"streams.{benchmark}", size, **{option: value})


@pytest.mark.parametrize("operator", ["map by a method", "filter", "keyed stateful", "keyed fold"])
def test_an_operator_in_python_comes_out_right(operator: str) -> None:
    options = {"operator": operator, "cost": "middling", "workers": 2}
    check_result("streams.python_operators", 600, **options)


@pytest.mark.parametrize("state", ["counts", "pairs", "lists"])
def test_a_snapshot_has_all_rows(state: str) -> None:
    for part in ("pause", "whole", "restore"):
        check_result("streams.snapshots", 50, state=state, measured=part)


LIBRARIES = {
    "callboard": "callboard.channels",
    "threads": "threading",
    "bounded_threads": "threading",
}
"""The modules of those whose name is another one."""


@pytest.mark.parametrize(
    "by", ["callboard", "threads", "bounded_threads", "asyncio", "trio", "anyio", "culsans"]
)
@pytest.mark.parametrize(
    ("benchmark", "size", "options"),
    [
        ("ping_pong", 100, {}),
        ("pipeline", 100, {"capacity": 1}),
        ("pipeline", 50, {"capacity": 4, "stages": 10}),
        ("fan_in", 160, {}),
        ("thread_and_task", 50, {}),
    ],
)
def test_channels_bring_every_value(
    benchmark: str, size: int, options: dict[str, int], by: str
) -> None:
    if benchmark == "thread_and_task" and by not in ("callboard", "asyncio", "culsans"):
        pytest.skip(f"{by} does not play it")
    pytest.importorskip(LIBRARIES.get(by, by))
    check_result(f"channels.{benchmark}", size, by=by, **options)


@pytest.mark.parametrize(
    ("way", "library"),
    [
        ("selection", "callboard.channels"),
        ("once", "callboard.channels"),
        ("found", "callboard.channels"),
        ("merged", "asyncio"),
        ("merged", "trio"),
        ("tasks", "asyncio"),
        ("chanio", "chanio"),
    ],
)
def test_a_select_takes_the_value_that_is_there(way: str, library: str) -> None:
    pytest.importorskip(library)
    check_result("channels.selecting", 50, way=way, by=library, channels=20)


@pytest.mark.parametrize("dedicated", [False, True])
@pytest.mark.parametrize(
    ("benchmark", "options"), [("replication", {"depth": 9}), ("synchrocells", {})]
)
def test_pipelines_lose_no_record(benchmark: str, options: dict[str, int], dedicated: bool) -> None:
    pytest.importorskip("callboard.channels")
    check_result(f"channels.{benchmark}", 20, dedicated=dedicated, **options)


@pytest.mark.parametrize("capacity", [1, 16])
def test_messages_beside_channels_arrive_in_their_order(capacity: int) -> None:
    check_result("channels.telling", 100, capacity=capacity)
