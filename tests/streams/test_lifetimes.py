"""The memory of a run is freed with the run."""

from __future__ import annotations

import gc
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from callboard import Actor, ActorSystem
from callboard.streams import Graph, Heuristic, Run, StreamError, entry
from callboard.streams.programs.program import Batch
from callboard.testing import ManualSystem
from tests.streams.answering import double


class Row:
    """Something that is known to be gone."""


def graph() -> Graph[Any]:
    rows = entry("rows", Row)
    keyed = rows.key_by(id, partitions=4).batch(10).flat_map(lambda pair: pair[1])
    return rows.filter(lambda _: True).union(keyed).map(lambda row: row).collect()


def end_well(run: Run[Any]) -> None:
    assert len(run.finish(timeout=30)) == 200


def cancel(run: Run[Any]) -> None:
    run.cancel()


def forget(run: Run[Any]) -> None:
    pass


@pytest.mark.parametrize("end", [end_well, cancel, forget])
@pytest.mark.parametrize("kind", [ActorSystem, ManualSystem])
def test_a_run_frees_its_rows(kind: type[ActorSystem], end: Callable[[Run[Any]], None]) -> None:
    rows = [Row() for _ in range(100)]
    known = [weakref.ref(row) for row in rows]
    with kind() as system:
        run = system.run(graph(), batch_size=3)
        run.send("rows", rows)
        end(run)
        del run, rows
        system.drain()
        gc.collect()
        assert [row() for row in known if row() is not None] == []


class Owner:
    """Has a run, of operators that are its methods."""

    def __init__(self, system: ActorSystem, **options: Any) -> None:
        keyed = entry("rows", int).map(self.work).key_by(self.key, partitions=4)
        graph = keyed.batch(10).flat_map(self.rows).collect()
        self.run: Run[Any] = system.run(graph, batch_size=3, **options)

    def work(self, row: int) -> int:
        1 // (50 - row)
        return row

    def key(self, row: int) -> int:
        return row % 10

    def rows(self, batch: tuple[int, list[int]]) -> list[int]:
        return batch[1]


def send_and_finish(run: Run[Any], rows: Iterable[Any]) -> Any:
    run.send("rows", rows)
    return run.finish(timeout=30)


def end_with_an_error(run: Run[Any]) -> None:
    with pytest.raises(StreamError, match=r"failed at input \d+, 50"):
        send_and_finish(run, range(100))
    run.cancel()  # send() may have raised: then nothing has ended it


def end_before_the_error(run: Run[Any]) -> None:
    assert len(send_and_finish(run, range(50))) == 50


def cancel_at_once(run: Run[Any]) -> None:
    run.send("rows", range(50))
    run.cancel(timeout=0)  # rounds are on their way when the collector comes


@pytest.mark.parametrize("end", [end_with_an_error, end_before_the_error, cancel_at_once])
@pytest.mark.parametrize("kind", [ActorSystem, ManualSystem])
@pytest.mark.parametrize("model", ["dynamic", "assigned", "manual"])
def test_operators_may_refer_to_their_run_which_is_let_go_at_its_end(
    kind: type[ActorSystem], end: Callable[[Run[Any]], None], model: str
) -> None:
    with kind() as system:
        owner = Owner(system, threading=model)
        known = weakref.ref(owner)
        end(owner.run)
        system.drain()
        del owner
        gc.collect()
        assert known() is None


def test_rounds_on_their_way_are_dropped_though_the_collector_emptied_what_works_on_them() -> None:
    with ManualSystem() as system:  # where none is done before its time
        known = weakref.ref(Owner(system, threading="assigned").run)
        run = known()
        assert run is not None
        first, *others = run._work.programs  # the collector looks at what is referred to from
        del run, others  # outside before it looks at the others, and so begins there next time
        gc.collect()
        run = known()
        assert run is not None
        cancel_at_once(run)
        assert run._work.flow.done == 0
        del run, first
        system.drain()
        gc.collect()  # an error in what works on rounds would be shown as unraisable
        assert known() is None


@pytest.mark.parametrize("ordered", [True, False])
def test_awaited_rounds_drop_in_garbage(ordered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    problems: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: problems.append(what.exc_value))
    circle: list[Any] = []

    def double_in(circle: list[Any]) -> Callable[[int], Any]:
        return lambda row: double(row + len(circle))

    with ManualSystem() as system:  # where none is done before its time
        rows = entry("rows", int).map(double_in(circle), in_flight=2, ordered=ordered)
        circle.append(system.run(rows.collect(), batch_size=3))
        known = weakref.ref(circle[0])
        first, *others = circle[0]._work.programs
        del circle, others, rows
        gc.collect()  # which begins at `first` next time: see above
        again = known()
        assert again is not None
        again.send("rows", range(50))
        again.cancel(timeout=0)
        assert again._work.flow.done == 0
        del again, first
        system.drain()
        gc.collect()
        assert known() is None
    assert problems == []


def test_a_system_in_garbage_drops_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    problems: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: problems.append(what.exc_value))
    for number in range(60):
        system = ActorSystem(workers=1 + number % 2)
        rows = entry("rows", int).map(double, in_flight=1 + number % 5)
        even, odd = rows.branch(lambda row: row % 4 == 0)
        model = ("dynamic", "dedicated", "assigned")[number % 3]
        run = system.run(even.union(odd).collect(), batch_size=1, threading=model)
        run.send("rows", range(number % 7))
        circle: list[Any] = [system, run]
        circle.append(circle)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            del system, run, circle
            gc.collect()
    assert problems == []


def test_a_failure_is_freed_with_its_run() -> None:
    def fail(row: Row) -> None:
        raise LookupError(row)

    rows = [Row()]
    known = weakref.ref(rows[0])
    with ActorSystem() as system:
        run = system.run(entry("rows", Row).map(fail).collect())
        with pytest.raises(StreamError, match="failed at input 0"):
            send_and_finish(run, rows)
        run.cancel()
        del run, rows
        system.drain()
        gc.collect()
        assert known() is None


def test_the_wake_ups_of_a_run_that_has_ended_are_no_dead_letters() -> None:
    class Gate(Actor[threading.Event]):
        def receive(self, opened: threading.Event) -> None:
            entered.set()
            assert opened.wait(60)

    entered, opened = threading.Event(), threading.Event()
    with ActorSystem(workers=1) as system:
        run = system.run(graph())
        system.spawn(Gate).tell(opened)
        assert entered.wait(30)
        run.send("rows", [Row()])  # wakes lanes, which find no worker before they are stopped
        run.cancel(timeout=0)
        opened.set()
        system.drain()
        assert system.dead_letters.reasons == {}


def test_a_run_is_let_go_with_a_heuristic_that_refers_to_it() -> None:
    class Referring(Heuristic):
        run: Any = None
        seen: Any = None

        def choose(self, operators: Any) -> Any:
            self.seen = operators
            return operators[0]

    heuristic = Referring()
    with ActorSystem() as system:
        run = heuristic.run = system.run(graph(), policy=heuristic, batch_size=1)
        run.send("rows", [Row() for _ in range(100)])
        end_well(run)
    known = weakref.ref(run)
    del run, heuristic
    gc.collect()
    assert known() is None


def test_the_garbage_collector_does_not_look_through_rounds_on_their_way() -> None:
    rows = [object() for _ in range(50)]
    with ManualSystem(seed=1) as system:
        run = system.run(entry("rows").map(str).collect(), batch_size=1, window=64)
        run.send("rows", rows)  # they wait: nothing runs before finish()
        assert gc.get_referrers(rows[7]) == [rows]
        batches = [each for each in gc.get_objects() if isinstance(each, Batch)]
        assert not [each for each in batches if rows[7] in each.rows]
        assert run.finish() == [str(row) for row in rows]
