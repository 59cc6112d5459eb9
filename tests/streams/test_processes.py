"""Operators in worker processes: the same outputs, errors and counts as without."""

from __future__ import annotations

import logging
import os
import select
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from callboard import ActorSystem, ConfigError
from callboard.streams import (
    FailedRow,
    Graph,
    GraphError,
    ProcessLost,
    RowCounts,
    RunTimeout,
    SideOutput,
    StreamError,
    Watermark,
    entry,
)
from tests.streams.outcomes import in_sequence, outcome_of
from tests.streams.random_graphs import Case, cases, fragile_chains, rows
from tests.streams.shapes import Chain
from tests.streams.test_random_runs import counted, feed


@pytest.fixture(scope="module")
def system(root: Path) -> Iterator[ActorSystem]:
    with pytest.MonkeyPatch.context() as patched, ActorSystem(processes=2) as made:
        patched.syspath_prepend(str(root))  # where the processes find this module
        yield made


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    monkeypatch.syspath_prepend(str(root))


def run(system: ActorSystem, graph: Graph[Any], sent: Any, **options: Any) -> Any:
    made = system.run(graph, **options)
    made.send("rows", sent, timeout=60)
    return made.finish(timeout=60)


def tripled(number: int) -> int:
    return number * 3


def is_even(number: int) -> bool:
    return number % 2 == 0


def process_of(_: Any) -> int:
    return os.getpid()


def refuse_seven(number: int) -> int:
    if number == 7:
        raise ValueError("seven")
    return number


class Picky:
    """Refuses to be pickled."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __reduce__(self) -> Any:
        raise TypeError("this one stays")


class Marked:
    """Shows failures, and the watermarks among them."""

    def receive(self, failed: FailedRow) -> list[Any]:
        return [failed.serial]

    def on_watermark(self, time: int) -> list[Any]:
        return [f"at {time}"]


class Adder:
    def __init__(self, amount: int) -> None:
        self.amount = amount

    def receive(self, row: int) -> list[int]:
        return [row + self.amount]


def killed_at_seven(number: int) -> int:
    if number == 7:
        os._exit(3)
    return number


options = st.fixed_dictionaries(
    {"batch_size": st.sampled_from([1, 2, 7, 256]), "window": st.sampled_from([1, 2, 4, 16])}
)


@given(cases(awaits=True), options)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_graphs_equal_a_sequential_run(
    system: ActorSystem, case: Case, options: dict[str, Any]
) -> None:
    counts = RowCounts(kept=10_000)
    expected = case.graph.run_sequentially(case.inputs, row_counts=counts)
    made = system.run(case.graph, **options)
    made.row_counts.kept = 10_000
    assert feed(made, case) == expected
    assert counted(made.row_counts) == counted(counts)


@given(fragile_chains(), rows, options)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_failures_come_where_a_sequential_run_has_them(
    system: ActorSystem, chain: Chain, rows: list[Any], options: dict[str, Any]
) -> None:
    def in_processes(graph: Graph[Any]) -> None:
        made = system.run(graph, **options)
        for row in rows:  # one by one, so that some are sent after the failure
            made.send("rows", [row], timeout=60)
        made.finish(timeout=60)

    assert outcome_of(chain, in_processes) == outcome_of(chain, in_sequence(rows, 256))


def test_functions_run_in_the_processes_and_not_after_here(system: ActorSystem) -> None:
    graph = entry("rows", int).map(process_of).collect()
    found = set(run(system, graph, range(2000), batch_size=10))
    assert len(found) == 2
    assert os.getpid() not in found
    here = entry("rows", int).here().map(process_of).collect()
    assert set(run(system, here, range(10))) == {os.getpid()}
    scanned = entry("rows", int).here().scan(0, lambda _, row: os.getpid()).collect()
    assert set(run(system, scanned, range(10))) == {os.getpid()}


def test_run_on_ends_what_here_began(system: ActorSystem) -> None:
    graph = entry("rows", int).here().map(tripled).run_on("dynamic").map(process_of).collect()
    assert os.getpid() not in run(system, graph, range(10))


def test_operators_in_a_row_run_in_one_process(system: ActorSystem) -> None:
    graph = (
        entry("rows", int)
        .map(lambda row: (row, os.getpid()))
        .filter(lambda pair: pair[0] % 2)
        .flat_map(lambda pair: [pair[1] == os.getpid()])
        .collect()
    )
    assert run(system, graph, range(1000), batch_size=7) == [True] * 500


def test_statistics_count_the_rows_of_each_operator(system: ActorSystem) -> None:
    graph = (
        entry("rows", int)
        .filter(is_even, name="evens")
        .flat_map(lambda row: [row] * 3, name="thrice")
        .map(tripled, name="tripled")
        .collect()
    )
    made = system.run(graph, batch_size=16)
    made.send("rows", range(100))
    made.finish(timeout=60)
    found = {one.name: (one.rows_in, one.rows_out) for one in made.statistics().operators}
    assert found["evens"] == (100, 50)
    assert found["thrice"] == (50, 150)
    assert found["tripled"] == (150, 150)
    selectivities = {one.name: one.selectivity for one in made.statistics().operators}
    assert (selectivities["evens"], selectivities["thrice"]) == (0.5, 3.0)
    assert all(one.busy > 0 and one.cost > 0 for one in made.statistics().operators[:3])
    threads = {one.name: one.thread for one in made.statistics().operators}
    assert threads["evens"] == "worker processes"
    assert threads["collect"] == ""


def test_an_exception_comes_with_its_row_and_the_traceback_of_the_process(
    system: ActorSystem,
) -> None:
    graph = entry("rows", int).filter(lambda row: row > 3).map(refuse_seven, name="picky").collect()
    with pytest.raises(StreamError) as caught:
        run(system, graph, range(20), batch_size=2)
    assert (caught.value.operator, caught.value.serial, caught.value.row) == ("picky", 3, 7)
    assert isinstance(caught.value.__cause__, ValueError)
    assert "refuse_seven" in caught.value.__cause__.__notes__[0]


def test_an_exception_that_cannot_be_pickled_is_told_by_its_text(system: ActorSystem) -> None:
    def fail(_: int) -> None:
        error = ValueError("has a lock")
        error.lock = threading.Lock()  # type: ignore[attr-defined]
        raise error

    with pytest.raises(StreamError) as caught:
        run(system, entry("rows", int).map(fail).collect(), [1])
    assert str(caught.value.__cause__) == "ValueError: has a lock"


def test_skipped_rows_have_their_place_in_the_run(system: ActorSystem) -> None:
    graph = (
        entry("rows", int)
        .filter(lambda row: row != 2)
        .map(refuse_seven, name="picky", errors="skip")
        .collect()
    )
    made = system.run(graph, batch_size=3)
    made.send("rows", [*range(10), 7])
    assert made.finish(timeout=60) == [0, 1, 3, 4, 5, 6, 8, 9]
    found = [(one.operator, one.serial, one.row) for one in made.row_counts.failures]
    assert found == [("picky", 6, 7), ("picky", 9, 7)]


def test_failed_rows_and_side_outputs_leave_by_their_ports(system: ActorSystem) -> None:
    def divided(number: int) -> Any:
        return [SideOutput("small", number)] if number < 3 else [refuse_seven(number)]

    main = entry("rows", int).flat_map(divided, sides=["small"], errors="side", name="divided")
    graph = Graph(
        main.collect(name="main"),
        main.side("small").collect(name="small"),
        main.failures.collect(name="failed"),
    )
    found = run(system, graph, range(10), batch_size=4)
    assert found["main"] == [3, 4, 5, 6, 8, 9]
    assert found["small"] == [0, 1, 2]
    (failed,) = found["failed"]
    assert isinstance(failed, FailedRow)
    assert (failed.operator, failed.serial, failed.row) == ("divided", 7, 7)


def test_a_row_that_cannot_be_pickled_is_an_error_of_that_row(system: ActorSystem) -> None:
    sent = [1, 2, Picky(3), 4]
    doubled = entry("rows").map(lambda row: row * 2, name="doubled")
    made = system.run(doubled.collect())
    results = made.results()
    made.send("rows", sent)
    assert [next(results), next(results)] == [2, 4]
    with pytest.raises(StreamError, match="'doubled' failed at input 2") as caught:
        next(results)
    assert "this one stays" in str(caught.value.__cause__)


def test_a_row_that_cannot_be_pickled_can_be_skipped_or_put_aside(system: ActorSystem) -> None:
    sent = [1, Picky(2), 7, Watermark(5), Picky(3), 4, Watermark(6)]
    skipping = entry("rows").map(refuse_seven, name="picky", errors="skip")
    made = system.run(skipping.map(tripled).collect())
    made.send("rows", sent)
    assert made.finish(timeout=60) == [3, 12]
    assert sorted(one.serial for one in made.row_counts.failures) == [1, 2, 4]
    aside = entry("rows").map(refuse_seven, name="picky", errors="side")
    graph = Graph(
        aside.collect(name="main"), aside.failures.here().stateful(Marked).collect(name="failed")
    )
    found = run(system, graph, sent)
    assert found == {"main": [1, 4], "failed": [1, 2, "at 5", 4, "at 6"]}


def test_an_output_that_cannot_be_pickled_ends_the_run_behind_those_before(
    system: ActorSystem,
) -> None:
    def wrapped(number: int) -> Any:
        return threading.Lock() if number == 3 else number

    made = system.run(entry("rows", int).map(wrapped, name="wrapped").collect())
    results = made.results()
    made.send("rows", range(5))
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(StreamError, match="'wrapped' failed") as caught:
        next(results)
    assert "cannot pickle" in str(caught.value.__cause__)


def test_a_function_that_cannot_be_pickled_is_an_error_of_the_run(system: ActorSystem) -> None:
    lock = threading.Lock()

    def locked(row: int) -> int:
        with lock:
            return row

    with pytest.raises(GraphError, match=r"'locked' cannot run in a worker process.*-> lock"):
        system.run(entry("rows", int).map(locked).collect())
    assert run(system, entry("rows", int).here().map(locked).collect(), [1]) == [1]


def test_an_object_of_a_class_is_made_in_each_process(system: ActorSystem) -> None:
    graph = entry("rows", int).stateless(Adder, 5).map(tripled).collect()
    assert run(system, graph, range(100), batch_size=9) == [(row + 5) * 3 for row in range(100)]


def test_messages_larger_than_the_shared_memory_pass(system: ActorSystem) -> None:
    sent = [bytes([at]) * 3_000_000 for at in range(5)]
    graph = entry("rows", bytes).map(lambda row: row + b"!").collect()
    assert run(system, graph, sent, batch_size=1) == [row + b"!" for row in sent]


def test_a_snapshot_goes_on_with_and_without_processes(system: ActorSystem) -> None:
    graph = entry("rows", int).filter(is_even, name="evens").map(tripled).collect()
    with ActorSystem() as alone:
        made = system.run(graph)
        made.send("rows", range(10))
        taken = made.snapshot()
        made.cancel()
        for then in (system, alone):
            again = then.run(graph, restore=taken)
            again.send("rows", range(10, 20))
            assert again.finish(timeout=60) == [row * 3 for row in range(0, 20, 2)]


def test_a_row_that_ends_each_process_fails_the_run() -> None:
    with ActorSystem(processes=1) as system:
        graph = entry("rows", int).map(killed_at_seven, name="fatal").collect()
        with pytest.raises(StreamError, match="'fatal' failed") as caught:
            run(system, graph, range(10))
        assert isinstance(caught.value.__cause__, ProcessLost)
        assert "exit status 3" in str(caught.value.__cause__)
        assert run(system, entry("rows", int).map(tripled).collect(), [1]) == [3]


def test_killed_processes_lose_and_double_nothing() -> None:
    rows, every = 5_000, 500
    graph = entry("rows", int).map(tripled).map(lambda row: (row, os.getpid())).collect()
    with ActorSystem(processes=2) as system:
        made = system.run(graph, batch_size=16, window=4)
        results = made.results(limit=64)  # so processes are few rows ahead of what is seen
        sending = threading.Thread(target=made.send, args=("rows", range(rows)))
        sending.start()
        seen: list[int] = []
        killed: list[int] = []
        while len(seen) < rows:
            number, process = next(results)
            seen.append(number)
            if len(seen) % every == 0:
                os.kill(process, signal.SIGKILL)
                killed.append(process)
        sending.join()
        made.finish(timeout=60)
    assert seen == [row * 3 for row in range(rows)]
    assert len(set(killed)) == rows // every


def test_a_function_that_never_returns_holds_up_neither_cancel_nor_the_system() -> None:
    with ActorSystem(processes=1) as system:
        made = system.run(entry("rows", int).map(lambda _: threading.Event().wait()).collect())
        made.send("rows", [1])
        with pytest.raises(RunTimeout):
            made.finish(timeout=0.01)
        made.cancel()
        assert run(system, entry("rows", int).map(tripled).collect(), [1]) == [3]


def test_records_of_loggers_go_to_the_log_of_the_program(
    system: ActorSystem, caplog: pytest.LogCaptureFixture
) -> None:
    def warn(row: int) -> int:
        logger = logging.getLogger("callboard.tests.rows")
        logger.warning("row %d", row)
        if row == 2:
            try:
                raise ValueError("two")
            except ValueError:
                logger.exception("cannot be")
        return row

    run(system, entry("rows", int).map(warn).collect(), range(3))
    found = [record for record in caplog.records if record.name == "callboard.tests.rows"]
    assert sorted(record.getMessage().splitlines()[0] for record in found) == [
        "cannot be",
        "row 0",
        "row 1",
        "row 2",
    ]
    assert all(record.processName.startswith("callboard-process-") for record in found)  # type: ignore[union-attr]
    assert all(record.process != os.getpid() for record in found)
    (error,) = [record for record in found if record.levelname == "ERROR"]
    assert "ValueError: two" in error.getMessage()


def test_threads_of_a_function_log_beside_it(
    system: ActorSystem, caplog: pytest.LogCaptureFixture
) -> None:
    def warn_beside(row: int) -> str:
        logger = logging.getLogger("callboard.tests.beside")

        def warn() -> None:
            for _ in range(100):
                logger.warning("x" * 10_000)

        threads = [threading.Thread(target=warn) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return "y" * 2_000_000

    assert run(system, entry("rows", int).map(warn_beside).collect(), [1]) == ["y" * 2_000_000]
    found = [record for record in caplog.records if record.name == "callboard.tests.beside"]
    assert [record.getMessage() for record in found] == ["x" * 10_000] * 200


def test_a_breakpoint_says_where_to_debug(system: ActorSystem) -> None:
    with pytest.raises(StreamError) as caught:
        run(system, entry("rows", int).map(lambda _: breakpoint()).collect(), [1])
    assert "keep the operator in the program by here()" in str(caught.value.__cause__)


def test_a_process_that_works_is_named_as_the_reason_for_a_wait(tmp_path: Path) -> None:
    begun = str(tmp_path / "begun")
    os.mkfifo(begun)

    def never(_: int) -> bool:
        Path(begun).write_text("", encoding="utf-8")  # waits for the reader
        return threading.Event().wait()

    with ActorSystem(processes=1) as system:
        made = system.run(entry("rows", int).map(never, name="stuck").collect())
        made.send("rows", [1])
        Path(begun).read_text(encoding="utf-8")
        with pytest.raises(
            RunTimeout, match=r"worker process.*callboard-process-0 \(process \d+\)"
        ):
            made.finish(timeout=0.01)
        made.cancel()


def test_wrong_numbers_of_processes_are_refused() -> None:
    for wrong in (-1, 1.5, "two"):
        with pytest.raises(ConfigError, match="processes"):
            ActorSystem(processes=wrong)  # type: ignore[arg-type]


def test_descriptors_and_processes_end_with_the_system() -> None:
    graph = entry("rows", int).map(process_of).collect()

    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = 0
    for _ in range(4):
        with ActorSystem(processes=2) as system:
            found = set(run(system, graph, range(100), batch_size=1))
        for process in found:
            with pytest.raises(ProcessLookupError):
                os.kill(process, 0)
        before = before or descriptors()
    assert descriptors() <= before


PROGRAM = """
from dataclasses import dataclass
from enum import Enum
from callboard import ActorSystem
from callboard.streams import entry

class Color(Enum):
    RED = 1

@dataclass
class Point:
    x: int
    color: Color = Color.RED

    def moved(self):
        return Point(self.x + OFFSET)

OFFSET = 10

class Refused(Exception):
    pass

def move(point):
    if point.x == 3:
        raise Refused(point.x)
    return point.moved()

with ActorSystem(processes=2) as system:
    run = system.run(entry("rows").map(move, errors="skip").collect())
    run.send("rows", [Point(x) for x in range(6)])
    found = run.finish(timeout=60)
    assert found == [Point(10), Point(11), Point(12), Point(14), Point(15)], found
    assert all(type(one) is Point and one.color is Color.RED for one in found)
    assert type(run.row_counts.failures[0].error) is Refused

    @dataclass
    class Point:  # again, as in a notebook
        x: int

        def moved(self):
            return Point(-self.x)

    Point.__qualname__ = "Point"
    run = system.run(entry("rows").map(move).collect())
    run.send("rows", [Point(1), Point(2)])
    assert run.finish(timeout=60) == [Point(-1), Point(-2)]

    @dataclass
    class spec:  # a name that the process has for itself
        x: int

    run = system.run(entry("rows").map(lambda one: spec(one.x + 1)).collect())
    run.send("rows", [spec(1)])
    assert run.finish(timeout=60) == [spec(2)]
    print("done")
"""


def test_a_script_without_a_guard_runs_with_its_own_classes(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(PROGRAM))
    ran = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=120, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "done\n", "")


KILLED = """
import os, sys, threading
from callboard import ActorSystem
from callboard.streams import entry

system = ActorSystem(processes=1)
run = system.run(entry("rows").map(lambda _: os.getpid()).collect())
results = run.results()
run.send("rows", [1])
print(next(results), flush=True)
run = system.run(entry("rows").map(lambda _: threading.Event().wait()).collect())
run.send("rows", [1])
sys.stdin.read()
"""


def test_a_killed_program_leaves_no_process(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KILLED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        worker = int(program.stdout.readline())
        descriptor = os.pidfd_open(worker)
        program.kill()
        try:
            assert select.select([descriptor], [], [], 60)[0]
        finally:
            os.close(descriptor)
