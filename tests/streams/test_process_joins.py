"""Joins whose pairs are compared in worker processes: the same outputs, errors and snapshots."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import nullcontext, suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard import ActorSystem
from callboard.streams import (
    Graph,
    GraphError,
    ProcessLost,
    Run,
    SnapshotError,
    Stream,
    StreamError,
    entry,
)
from callboard.worker_processes import place
from callboard.worker_processes.processes import processes_of
from tests.streams.cutting import run_in_parts
from tests.streams.in_processes import Picky
from tests.streams.in_processes import options as sizes
from tests.streams.join_cases import HOWS, windows
from tests.streams.join_model import Row
from tests.streams.process_oracles import of_few
from tests.streams.test_idle import Marks
from tests.streams.test_join_lanes import combined, fragile, outcome
from tests.streams.test_merge import arrivals, streams, time_of

pytestmark = pytest.mark.usefixtures("importable")

joins = st.fixed_dictionaries(
    {
        "how": st.sampled_from(HOWS),
        "rule": st.sampled_from(["strict", "three-step"]),
        "lanes": st.sampled_from([1, 1, 3]),
        "errors": st.sampled_from(["fail", "skip", "side"]),
    }
)


@pytest.fixture
def system(systems: list[ActorSystem]) -> ActorSystem:
    """A system with two worker processes."""
    return systems[0]


def graph_of(join: Stream[Any], errors: str) -> Graph[Any]:
    out = [join.stateful(Marks).here(), join.side("late")]
    if errors == "side":
        failures: Any = join.failures
        out.append(failures.here().map(lambda one: (one.serial, one.row, repr(one.error))))
    return Graph(*(stream.collect(name=f"{n}") for n, stream in enumerate(out)))


def feed(run: Run[Any], arriving: list[tuple[str, list[Any]]]) -> Any:
    for name, some in arriving:
        run.send(name, some, timeout=60)
    return run.finish(timeout=60)


def joined(where: Any, **options: Any) -> Stream[Any]:
    given = {"by": int, "within": 5, "name": "joined", **options}
    return entry("a").join(entry("b"), where=where, **given)


def is_odd_sum(left: int, right: int) -> bool:
    return (int(left) + int(right)) % 2 == 1


def in_parts(rows: int, size: int = 10) -> list[tuple[str, list[int]]]:
    return [
        (name, [*range(begin, begin + size)]) for begin in range(0, rows, size) for name in "ab"
    ]


def threads_of(run: Run[Any]) -> dict[str, str]:
    return {one.name: one.thread for one in run.statistics().operators}


@of_few
@given(
    st.data(), streams(2), st.sampled_from([fragile, None]), st.booleans(), windows, joins, sizes
)
def test_processes_give_what_the_program_gives_also_errors(
    systems: list[ActorSystem],
    data: st.DataObject,
    rows: list[list[Any]],
    where: Any,
    combines: bool,
    window: dict[str, Any],
    options: dict[str, Any],
    sizes: dict[str, Any],
) -> None:
    combine = combined if combines and options["how"] not in ("semi", "anti") else None
    join = entry("a").join(
        entry("b"), by=time_of, where=where, combine=combine, late="side", **window, **options
    )
    graph = graph_of(join, options["errors"])
    arriving = data.draw(arrivals(rows))
    expected = outcome(lambda: graph.run_sequentially(arriving))
    for system in (systems[0], systems[3]):
        assert outcome(lambda: feed(system.run(graph, **sizes), arriving)) == expected  # noqa: B023


@of_few
@given(
    st.data(), streams(2), windows, joins, st.lists(st.integers(0, 24), min_size=1, max_size=3),
    st.lists(sizes, min_size=2, max_size=2), st.integers(0, 3),
)  # fmt: skip
def test_a_join_goes_on_from_snapshots_with_any_number_of_processes(
    systems: list[ActorSystem],
    data: st.DataObject,
    rows: list[list[Any]],
    window: dict[str, Any],
    options: dict[str, Any],
    cuts: list[int],
    sizes: list[dict[str, Any]],
    first: int,
) -> None:
    options["errors"] = "skip"
    join = entry("a").join(
        entry("b"), by=lambda row: row[2], where=value_below, late="side", **window, **options
    )
    graph = Graph(join.collect(name="out"), join.side("late").collect(name="late"))
    arriving = [(name, [as_plain(row) for row in some]) for name, some in data.draw(arrivals(rows))]
    expected = outcome(lambda: graph.run_sequentially(arriving))
    got = outcome(
        lambda: run_in_parts(
            graph,
            arriving,
            cuts,
            lambda part: nullcontext(systems[(first + part) % 4]),  # type: ignore[arg-type,return-value]
            sizes,
        )
    )
    assert got == expected


def as_plain(row: Any) -> Any:
    return tuple(row) if isinstance(row, Row) else row


def value_below(left: Any, right: Any) -> bool:
    if left[1] == right[1] + 2:
        raise ValueError
    return bool(left[3] < right[3])


def test_each_process_compares_its_part(system: ActorSystem) -> None:
    graph = joined(is_odd_sum).collect()
    made = system.run(graph)
    assert feed(made, in_parts(500)) == graph.run_sequentially(in_parts(500))
    threads = threads_of(made)
    assert threads == {
        "joined, in order": "",
        "joined, in lanes": "worker processes",
        "joined": "",
        "collect": "",
    }
    (compared,) = {each.lanes for each in made.statistics().operators if each.lanes}
    assert len(compared) == 2
    assert sum(compared) == sum(11 - max(0, 5 - row) - max(0, row - 494) for row in range(500))
    assert max(compared) <= 1.05 * min(compared)


@pytest.mark.parametrize(
    "options",
    [
        {"where": None},
        {"where": is_odd_sum, "how": "semi"},
        {"where": is_odd_sum, "how": "anti", "lanes": 2},
    ],
)
def test_joins_stay_where_most_pairs_are_not_compared_by_a_function(
    system: ActorSystem, options: dict[str, Any]
) -> None:
    graph = joined(**options).collect()
    made = system.run(graph)
    assert feed(made, in_parts(50)) == graph.run_sequentially(in_parts(50))
    assert set(threads_of(made).values()) == {""}


def test_here_keeps_the_comparisons_in_the_program(system: ActorSystem) -> None:
    a, b = entry("a").here(), entry("b")
    lock = threading.Lock()

    def locked(left: int, right: int) -> bool:
        with lock:
            return is_odd_sum(left, right)

    graph = a.join(b, by=int, within=5, where=locked).collect()
    assert feed(system.run(graph), in_parts(50)) == graph.run_sequentially(in_parts(50))


def test_a_function_that_cannot_be_pickled_is_an_error_that_names_the_object(
    system: ActorSystem,
) -> None:
    lock = threading.Lock()

    def locked(left: int, right: int) -> bool:
        with lock:
            return is_odd_sum(left, right)

    with pytest.raises(GraphError, match=r"'joined, in lanes' .*: .*-> test -> lock \(lock\)"):
        system.run(joined(locked).collect())


@pytest.mark.parametrize(
    "window", [{"within": 5}, {"within": 5, "rule": "three-step"}, {"rows": 3}]
)
def test_a_row_that_cannot_be_pickled_is_an_error_of_that_row(
    system: ActorSystem, window: dict[str, Any]
) -> None:
    sent: Any = [("a", [1, Picky(2), 3, 12]), ("b", [0, 2, Picky(3), 4, 5, 12])]
    options = {"by": value_of, "within": None, **window}
    join = joined(is_odd_sum_of_values, errors="side", **options)
    graph = Graph(
        join.collect(name="main"), join.failures.here().map(lambda one: one.row).collect(name="bad")
    )
    found = feed(system.run(graph), sent)
    without = [(name, [row for row in rows if isinstance(row, int)]) for name, rows in sent]
    if "rows" not in window:  # where such a row counts, too
        assert found["main"] == graph.run_sequentially(without)["main"]
    assert found["bad"] == [sent[0][1][1], sent[1][1][2]]
    with pytest.raises(StreamError, match="'joined' failed at input 1") as caught:
        feed(system.run(joined(is_odd_sum_of_values, **options).collect()), sent)
    assert "this one stays" in str(caught.value.__cause__)


def test_a_row_that_cannot_be_pickled_is_in_no_window(system: ActorSystem) -> None:
    graph = joined(is_odd_sum_of_values, errors="skip", by=value_of).collect()
    made = system.run(graph)
    made.send("a", [1, Picky(2), 3])
    made.send("b", [2, 4])
    taken = made.snapshot(timeout=60)
    made.cancel()
    again = system.run(graph, restore=taken)
    again.send("b", [6])
    expected = graph.run_sequentially({"a": [1, 3], "b": [2, 4, 6]})
    assert again.finish(timeout=60) == expected


def test_a_row_that_cannot_be_pickled_pushes_others_out(system: ActorSystem) -> None:
    def refuses_one(left: Any, right: Any) -> bool:
        return bool(1 // (left - 1) == 0)

    join = joined(refuses_one, errors="side", by=value_of, within=None, rows=3)
    graph = Graph(
        join.collect(name="main"), join.failures.here().map(lambda one: one.row).collect(name="bad")
    )
    sent: Any = [("a", [1, 2, 3, Picky(4)]), ("b", [6])]
    assert feed(system.run(graph), sent) == {"main": [(3, 6)], "bad": [sent[0][1][3]]}


def value_of(row: Any) -> int:
    return row if isinstance(row, int) else int(row.value)


def is_odd_sum_of_values(left: Any, right: Any) -> bool:
    return is_odd_sum(value_of(left), value_of(right))


class Time:
    """A time that cannot be pickled."""

    def __init__(self, time: int) -> None:
        self.time = time

    def __lt__(self, other: Any) -> bool:
        return bool(self.time < other.time)

    def __gt__(self, other: Any) -> bool:
        return bool(self.time > other.time)

    def __le__(self, other: Any) -> bool:
        return bool(self.time <= other.time)

    def __sub__(self, other: Any) -> int:
        return int(self.time - other.time)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Time) and self.time == other.time

    def __hash__(self) -> int:
        return hash(self.time)

    def __reduce__(self) -> Any:
        raise TypeError("this time stays")


def test_times_that_cannot_be_pickled_are_errors_of_their_rows(system: ActorSystem) -> None:
    join = joined(is_odd_sum, by=Time, errors="side", rule="three-step")
    graph = Graph(
        join.collect(name="main"), join.failures.here().map(lambda one: one.row).collect(name="bad")
    )
    found = feed(system.run(graph), [("a", [1, 3]), ("b", [2, 4])])
    assert found == {"main": [], "bad": [1, 2, 3, 4]}


def test_a_function_that_exits_ends_the_run(system: ActorSystem) -> None:
    def leave(left: int, right: int) -> bool:
        raise SystemExit(left)

    with pytest.raises(StreamError) as caught:
        feed(system.run(joined(leave).collect()), in_parts(50))
    assert isinstance(caught.value.__cause__, SystemExit)


def test_an_exception_has_the_traceback_of_the_process(system: ActorSystem) -> None:
    def fail(left: int, right: int) -> bool:
        raise ValueError(f"{left} and {right}")

    with pytest.raises(StreamError, match="'joined' failed at input 0") as caught:
        feed(system.run(joined(fail).collect()), in_parts(50))
    cause = caught.value.__cause__
    assert str(cause) == "0 and 0"
    assert "in fail" in cause.__notes__[0]  # type: ignore[union-attr]


def test_a_window_that_cannot_be_pickled_again_is_an_error_of_the_snapshot(
    system: ActorSystem,
) -> None:
    class Once:
        """Can be pickled once."""

        is_used = False

        def __reduce__(self) -> Any:
            if self.is_used:
                raise TypeError("not again")
            self.is_used = True
            return int, (1,)

        def __int__(self) -> int:
            return 1

    made = system.run(joined(is_odd_sum).collect())
    made.send("a", [Once()])
    made.send("b", [1, 2])
    with pytest.raises(SnapshotError, match="not again"):
        made.snapshot(timeout=60)
    made.cancel()


# --- ends of processes --------------------------------------------------------------------------


def kill_a_process(system: ActorSystem, turn: int) -> int | None:
    """Kill one of the processes, and return its number; None while it is being replaced."""
    figures = processes_of(system).figures()
    process = figures[turn % len(figures)].pid
    if process is not None:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    return process


@pytest.mark.parametrize("snapshots", [0, 300])
def test_killed_processes_lose_and_double_nothing(snapshots: int) -> None:
    rows, every = 1600, 400
    graph = joined(is_odd_sum, how="outer").collect()
    sent = in_parts(rows)
    expected = graph.run_sequentially(sent)
    killed: set[int | None] = set()
    with ActorSystem(processes=2) as system:
        made = system.run(graph, batch_size=16, window=4)
        for at, (name, some) in enumerate(sent):
            made.send(name, some, timeout=60)
            if at % (every // 10) == 5:
                killed.add(kill_a_process(system, at // (every // 10)))
            if snapshots and at % (snapshots // 10) == 9:
                made.snapshot(timeout=60)
        assert made.finish(timeout=60) == expected
    assert len(killed - {None}) > 1


def test_windows_that_are_not_kept_are_lost_with_their_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(place, "_MOST_KEPT", 1000)
    graph = joined(is_odd_sum).collect()
    sent = in_parts(2000)
    expected = graph.run_sequentially(sent[:120])
    with ActorSystem(processes=1) as system:
        made = system.run(graph)
        results = made.results()

        def send(begin: int, end: int) -> None:
            for name, some in sent[begin:end]:
                made.send(name, some, timeout=60)

        send(0, 100)  # more than may be kept
        made.snapshot(timeout=60)
        send(100, 104)  # from here on they are few
        kill_a_process(system, 0)
        send(104, 106)
        seen = [next(results) for _ in range(len(graph.run_sequentially(sent[:106])) - 40)]
        send(106, 120)  # too many again
        seen += [next(results) for _ in range(len(expected) - 40 - len(seen))]
        assert seen == expected[: len(seen)]
        kill_a_process(system, 0)
        with pytest.raises(StreamError, match="'joined, in lanes' failed") as caught:
            feed(made, sent[120:])
        assert isinstance(caught.value.__cause__, ProcessLost)
