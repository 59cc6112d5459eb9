"""Operators with a state in worker processes: the same outputs, errors and snapshots as without."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard import Actor, ActorSystem
from callboard.streams import (
    FailedRow,
    Graph,
    ProcessLost,
    Snapshot,
    SnapshotError,
    StreamError,
    TumblingWindow,
    Watermark,
    entry,
)
from callboard.worker_processes import place
from tests.streams.cutting import run_in_parts
from tests.streams.in_processes import Picky, run
from tests.streams.outcomes import in_sequence, outcome_of
from tests.streams.process_oracles import check_parts, of_few
from tests.streams.random_graphs import Case, cases, fragile_chains, rows
from tests.streams.shapes import Chain

pytestmark = pytest.mark.usefixtures("importable")

cuts = st.lists(st.integers(0, 60), min_size=1, max_size=3)
options = st.lists(
    st.fixed_dictionaries(
        {"batch_size": st.sampled_from([1, 2, 7, 256]), "window": st.sampled_from([1, 2, 16])}
    ),
    min_size=2,
    max_size=2,
)


@pytest.fixture
def system(systems: list[ActorSystem]) -> ActorSystem:
    """A system with two worker processes."""
    return systems[0]


class Summing:
    """The sum of a key's rows."""

    def __init__(self) -> None:
        self.total = 0

    def receive(self, row: int) -> list[int]:
        self.total += row
        return [self.total]

    def on_watermark(self, time: int) -> list[str]:
        return [f"{self.total} at {time}"]

    def on_final(self) -> list[str]:
        return [f"{self.total} at the end"]

    def snapshot(self) -> int:
        return self.total

    def restore(self, state: int) -> None:
        self.total = state


class Locked:
    """A state that cannot be pickled."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def receive(self, row: int) -> list[int]:
        return [row]


def add(total: int, row: int) -> int:
    return total + row


def add_and_name_process(_: Any, row: int) -> tuple[int, int]:
    return row, os.getpid()


def remainder(row: int) -> int:
    return row % 7


@of_few
@given(case=cases(awaits=True), cuts=cuts, options=options, first=st.integers(0, 3))
def test_random_graphs_go_on_from_snapshots_with_any_number_of_processes(
    systems: list[ActorSystem],
    system: ActorSystem,
    case: Case,
    cuts: list[int],
    options: list[dict[str, Any]],
    first: int,
) -> None:
    check_parts(systems, first, case, cuts, options)


@of_few
@given(fragile_chains(), rows, cuts, options)
def test_a_run_that_was_cut_fails_where_a_sequential_run_does(
    systems: list[ActorSystem],
    system: ActorSystem,
    chain: Chain,
    rows: list[Any],
    cuts: list[int],
    options: list[dict[str, Any]],
) -> None:
    def in_parts(graph: Graph[Any]) -> None:
        with_processes = [systems[0], systems[3]]
        run_in_parts(
            graph,
            [("rows", rows)],
            cuts,
            lambda part: nullcontext(with_processes[part % 2]),  # type: ignore[arg-type,return-value]
            options,
        )

    assert outcome_of(chain, in_parts) == outcome_of(chain, in_sequence(rows, 256))


def test_the_keys_of_an_operator_are_divided_among_the_processes(system: ActorSystem) -> None:
    graph = entry("rows", int).key_by(remainder).scan(None, add_and_name_process).collect()
    found = run(system, graph, range(1000), batch_size=10)
    assert [row for _, (row, _) in found] == [*range(1000)]
    homes = {(key, process) for key, (_, process) in found}
    assert len(homes) == 7
    assert len({process for _, process in homes} - {os.getpid()}) == 2


def test_a_partition_of_the_user_is_in_one_process(system: ActorSystem) -> None:
    keyed = entry("rows", int).key_by(remainder, partitions=7, partition=lambda key: key)
    found = run(system, keyed.scan(None, add_and_name_process).collect(), range(70))
    processes = [process for _, (_, process) in found[:7]]
    assert processes[0] == processes[2] == processes[4] == processes[6] != processes[1]
    assert processes[1] == processes[3] == processes[5]


def test_an_operator_with_one_state_runs_in_one_process(system: ActorSystem) -> None:
    graph = entry("rows", int).scan(None, add_and_name_process).collect()
    found = run(system, graph, range(1000), batch_size=10)
    assert [row for row, _ in found] == [*range(1000)]
    assert len({process for _, process in found} - {os.getpid()}) == 1


def test_operators_without_a_function_of_the_user_stay_in_the_program(system: ActorSystem) -> None:
    counted = entry("rows", int).key_by(remainder).count(name="counted")
    graph = counted.batch(5, name="lists").collect()
    made = system.run(graph)
    made.send("rows", range(20))
    assert sum(map(len, made.finish(timeout=60))) == 20
    threads = {one.name: one.thread for one in made.statistics().operators}
    assert threads == {"counted": "", "lists": "", "collect": ""}


def test_statistics_have_the_rows_and_time_of_the_processes(system: ActorSystem) -> None:
    keyed = entry("rows", int).key_by(remainder).scan(0, add, name="added")
    made = system.run(keyed.collect(), batch_size=16, hot_keys=1)
    made.send("rows", [*range(70), 3])
    made.finish(timeout=60)
    (added, *_) = made.statistics().operators
    assert (added.rows_in, added.rows_out, added.thread) == (71, 71, "worker processes")
    assert added.busy > 0
    assert added.cost > 0
    assert [one.key for one in added.hot_keys] == [3]


@pytest.mark.parametrize("keyed", [False, True])
def test_objects_see_watermarks_and_the_end(system: ActorSystem, keyed: bool) -> None:
    stream = entry("rows")
    source: Any = stream.key_by(remainder) if keyed else stream
    graph = source.stateful(Summing).collect()
    sent = [3, 10, 4, Watermark(5), 11, Watermark(7)]
    assert run(system, graph, sent, batch_size=2) == graph.run_sequentially({"rows": sent})


def test_rows_that_are_late_for_their_window_are_counted(system: ActorSystem) -> None:
    windows = TumblingWindow(10, by=lambda row: row)
    stream = entry("rows", int).watermarks(lambda row: row, delay_threshold=0)
    graph = stream.key_by(remainder).window(windows, sum).collect()
    made = system.run(graph, batch_size=2)
    made.send("rows", [1, 8, 25, 3, 24, 40])
    assert made.finish(timeout=60) == graph.run_sequentially({"rows": [1, 8, 25, 3, 24, 40]})
    assert made.row_counts.lates.total() == 1


@pytest.mark.parametrize("keyed", [False, True])
def test_a_row_that_cannot_be_pickled_is_an_error_of_that_row(
    system: ActorSystem, keyed: bool
) -> None:
    def stream(**given: Any) -> Any:
        source: Any = entry("rows")
        if keyed:
            source = source.key_by(lambda row: 0)
        return source.scan(0, lambda total, row: total + row, name="added", **given)

    sent = [1, 2, Picky(3), 4]
    with pytest.raises(StreamError, match="'added' failed at input 2") as caught:
        run(system, stream().collect(), sent)
    assert "this one stays" in str(caught.value.__cause__)
    made = system.run(stream(errors="skip").collect())
    made.send("rows", sent)
    assert [row[1] if keyed else row for row in made.finish(timeout=60)] == [1, 3, 7]
    (failure,) = made.row_counts.failures
    assert (failure.serial, failure.row) == (2, sent[2])
    aside = stream(errors="side")
    graph = Graph(aside.collect(name="main"), aside.failures.collect(name="failed"))
    (failed,) = run(system, graph, sent)["failed"]
    assert isinstance(failed, FailedRow)
    assert (failed.serial, failed.row) == (2, sent[2])


@pytest.mark.parametrize("keyed", [False, True])
def test_an_output_that_cannot_be_pickled_ends_the_run_behind_those_before(
    system: ActorSystem, keyed: bool
) -> None:
    source: Any = entry("rows", int)
    if keyed:
        source = source.key_by(lambda _: 0)
    wrapped = source.scan(0, lambda _, row: threading.Lock() if row == 3 else row, name="wrapped")
    made = system.run(wrapped.collect())
    results = made.results()
    made.send("rows", range(5))
    found = [next(results) for _ in range(3)]
    assert [row[1] if keyed else row for row in found] == [0, 1, 2]
    with pytest.raises(StreamError, match="'wrapped' failed") as caught:
        next(results)
    assert "pickle" in str(caught.value.__cause__)


def test_an_error_of_a_key_comes_with_its_row(system: ActorSystem) -> None:
    graph = entry("rows", int).key_by(lambda row: 1 // row).scan(0, add, name="added").collect()
    with pytest.raises(StreamError, match="'added' failed at input 2") as caught:
        run(system, graph, [1, 2, 0, 4])
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert caught.value.row == 0


def test_an_exception_has_the_traceback_of_the_process(system: ActorSystem) -> None:
    def fail(_: int, row: int) -> int:
        error = ValueError(f"refuses {row}")
        error.lock = threading.Lock()  # type: ignore[attr-defined]
        raise error

    for stream in (entry("rows", int), entry("rows", int).key_by(remainder)):
        with pytest.raises(StreamError, match="'failing' failed at input 0") as caught:
            run(system, stream.scan(0, fail, name="failing").collect(), [3])
        cause = caught.value.__cause__
        assert str(cause) == "ValueError: refuses 3"  # in place of one that cannot be pickled
        assert "in fail" in cause.__notes__[0]  # type: ignore[union-attr]


def test_a_function_that_exits_ends_the_run(system: ActorSystem) -> None:
    def leave(total: int, row: int) -> int:
        raise SystemExit(row)

    for stream in (entry("rows", int), entry("rows", int).key_by(remainder)):
        with pytest.raises(StreamError) as caught:
            run(system, stream.scan(0, leave, name="leaving").collect(), [1])
        assert isinstance(caught.value.__cause__, SystemExit)
    assert run(system, entry("rows", int).scan(0, add).collect(), [1, 2]) == [1, 3]


def test_a_state_that_cannot_be_pickled_is_an_error_of_the_snapshot(system: ActorSystem) -> None:
    for stream in (entry("rows", int), entry("rows", int).key_by(remainder)):
        made = system.run(stream.stateful(Locked, name="locked").collect())
        made.send("rows", [1])
        with pytest.raises(SnapshotError, match="'locked'"):
            made.snapshot(timeout=60)
        made.cancel()


def test_a_state_that_does_not_fit_is_an_error_of_the_run(system: ActorSystem) -> None:
    def summing(cls: type) -> Graph[Any]:
        return entry("rows", int).key_by(remainder).stateful(cls, name="summing").collect()

    class Refusing(Summing):
        def restore(self, state: int) -> None:
            raise ValueError(f"does not take {state}")

    made = system.run(summing(Summing))
    made.send("rows", [3])
    taken = made.snapshot(timeout=60)
    made.cancel()
    with pytest.raises(SnapshotError, match="does not take 3"):
        system.run(summing(Refusing), restore=taken)


class Snapshotting(Actor[list[int]]):
    """Runs a graph up to a snapshot and from there on, on the thread of a worker."""

    def receive(self, message: list[int]) -> Any:
        graph = entry("rows", int).key_by(remainder).scan(0, add).collect()
        made = self.system.run(graph)
        made.send("rows", message)
        taken = made.snapshot()
        made.cancel()
        return run(self.system, graph, message, restore=taken)


def test_an_actor_on_a_worker_can_take_a_snapshot(system: ActorSystem) -> None:
    found = system.spawn(Snapshotting).ask([*range(100)]).result(60)
    graph = entry("rows", int).key_by(remainder).scan(0, add).collect()
    assert found == graph.run_sequentially({"rows": [*range(100), *range(100)]})


# --- ends of processes --------------------------------------------------------------------------


def kill_processes(made: Any, rows: int, every: int, snapshots: int = 0) -> tuple[list[Any], int]:
    """Send rows to a run whose outputs end with a process, and kill that of each so many-th row.

    Returns the outputs, and the number of processes that were killed.
    """
    sent: Iterator[int] = iter(range(rows))
    results = made.results(limit=64)  # so processes are few rows ahead of what is seen

    def send() -> None:
        for number in sent:
            made.send("rows", [number])
            if snapshots and number % snapshots == snapshots - 1:
                made.snapshot()

    sending = threading.Thread(target=send)
    sending.start()
    seen: list[Any] = []
    killed: set[int] = set()
    while len(seen) < rows:
        *output, process = next(results)
        seen.append(output)
        if len(seen) % every == 0:
            os.kill(process, signal.SIGKILL)
            killed.add(process)
    sending.join()
    made.finish(timeout=60)
    return seen, len(killed)


def count_and_name_process(state: Any, row: int) -> tuple[int, int]:
    return (state[0] if state else 0) + 1, os.getpid()


@pytest.mark.parametrize("snapshots", [0, 300])
@pytest.mark.parametrize("keyed", [False, True])
def test_killed_processes_lose_and_double_nothing(keyed: bool, snapshots: int) -> None:
    rows, every = 1600, 400
    source: Any = entry("rows", int)
    if keyed:
        counted = source.key_by(remainder).scan(None, count_and_name_process)
        graph = counted.here().map(lambda row: (row[0], *row[1])).collect()
        came = Counter[int]()
        expected = []
        for row in range(rows):
            came[row % 7] += 1
            expected.append([row % 7, came[row % 7]])
    else:
        graph = source.scan(None, count_and_name_process).collect()
        expected = [[row + 1] for row in range(rows)]
    with ActorSystem(processes=2) as system:
        made = system.run(graph, batch_size=16, window=4)
        seen, killed = kill_processes(made, rows, every, snapshots)
    assert seen == expected
    assert killed == rows // every


def run_on(made: Any) -> Any:
    """Send rows until the run fails, or there have been many."""
    for row in range(1000):
        made.send("rows", [row], timeout=60)
    return made.finish(timeout=60)


def test_a_state_that_is_not_kept_is_lost_with_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "_MOST_KEPT", 100)
    graph = entry("rows", int).key_by(remainder).scan(None, count_and_name_process, name="counted")
    with ActorSystem(processes=1) as system:
        made = system.run(graph.collect())
        results = made.results()
        made.send("rows", range(7))
        _, (_, process) = next(results)
        made.snapshot(timeout=60)  # from here on the rows are few
        made.send("rows", [8])
        os.kill(process, signal.SIGKILL)
        made.send("rows", [9], timeout=60)
        assert [row[1][0] for row in [next(results) for _ in range(8)]][-2:] == [2, 2]
        made.send("rows", range(7))
        made.send("rows", range(7))
        found = [next(results) for _ in range(14)]
        os.kill(found[-1][1][1], signal.SIGKILL)
        with pytest.raises(StreamError, match="'counted' failed") as caught:
            run_on(made)
        assert isinstance(caught.value.__cause__, ProcessLost)
        assert "killed by signal 9; a state was in it" in str(caught.value.__cause__)


def test_a_row_that_ends_each_process_fails_the_run() -> None:
    def die(total: int, row: int) -> int:
        return os._exit(3) if row == 7 else total + row

    with ActorSystem(processes=1) as system:
        with pytest.raises(StreamError, match="'fatal' failed") as caught:
            run(system, entry("rows", int).scan(0, die, name="fatal").collect(), range(10))
        assert isinstance(caught.value.__cause__, ProcessLost)
        assert "9 processes ended with a round" in str(caught.value.__cause__)
        assert run(system, entry("rows", int).scan(0, add).collect(), [1, 2]) == [1, 3]


def test_a_snapshot_of_states_can_be_read_from_bytes(system: ActorSystem) -> None:
    graph = entry("rows", int).key_by(remainder).stateful(Summing).collect()
    made = system.run(graph)
    made.send("rows", range(20))
    taken = Snapshot.from_bytes(made.snapshot(timeout=60).to_bytes())
    made.cancel()
    again = system.run(graph, restore=taken)
    again.send("rows", range(20, 40))
    assert again.finish(timeout=60) == graph.run_sequentially({"rows": range(40)})
