"""Streams that fall silent, for which others do not wait forever."""

from __future__ import annotations

import math
from collections.abc import Callable
from queue import SimpleQueue
from threading import Event
from typing import Any
from weakref import ref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard import ActorSystem
from callboard.scheduling.flow.threading_models import Model
from callboard.streams import Graph, GraphError, Stream, Watermark, entry
from callboard.streams.running.heartbeat import RoundTimer, beat
from callboard.testing import ManualSystem
from callboard.timers import Timer, Timers
from tests.streams.join_model import Row
from tests.streams.test_merge import arrivals, streams, time_of

MODELS: list[Model] = ["dynamic", "manual", "dedicated", "assigned"]


class Marks:
    """Gives rows, and what it hears of time."""

    def receive(self, row: Any) -> Any:
        return [row]

    def on_watermark(self, time: Any) -> Any:
        return [("time", time)]


def merged(**options: Any) -> Stream[Any]:
    return entry("a").merge(entry("b"), by=abs, idle_timeout=4, **options)


def test_rows_wait_for_a_silent_stream_until_it_is_idle(manual: ManualSystem) -> None:
    seen: list[Any] = []
    run = manual.run(merged().to(seen.append))
    run.send("a", [1, 2, 3])
    manual.advance(3)
    assert seen == []
    run.send("a", [4])
    manual.advance(2)
    assert seen == [1, 2, 3, 4]
    run.send("a", [5])
    manual.run_until_idle()
    assert seen == [1, 2, 3, 4, 5]
    run.finish()


def test_a_stream_that_speaks_again_is_waited_for_again(manual: ManualSystem) -> None:
    seen: list[Any] = []
    run = manual.run(merged().to(seen.append))
    run.send("b", [-1])
    run.send("a", [3])
    manual.advance(5)
    run.send("b", [-3])
    run.send("a", [6])
    manual.advance(3)
    assert seen == [-1, 3, -3]
    run.send("b", [-5])
    manual.advance(1)
    assert seen == [-1, 3, -3, -5]
    manual.advance(4)
    assert seen == [-1, 3, -3, -5, 6]
    run.finish()


def test_a_row_whose_place_is_past_is_late(manual: ManualSystem) -> None:
    stream = merged(late="side")
    graph = Graph(stream.collect(name="out"), stream.side("late").collect(name="late"))
    run = manual.run(graph)
    run.send("b", [-3])
    manual.advance(5)  # nobody is waited for any more
    run.send("a", [2, 3, 4])
    run.send("b", [-3, -4])
    assert run.finish() == {"out": [-3, 4, -4], "late": [2, 3, -3]}


def test_a_late_row_is_counted_and_a_dead_letter(manual: ManualSystem) -> None:
    letters: list[Any] = []
    manual.dead_letters.subscribe(lambda letter: letters.append(letter.message))
    run = manual.run(merged().collect())
    run.send("a", [5])
    manual.advance(5)
    run.send("b", [-4, -5])
    assert run.finish() == [5, -5]
    assert run.row_counts.lates == {"merge": 1}
    assert letters == [-4]


def test_event_time_goes_on_without_the_idle(manual: ManualSystem) -> None:
    run = manual.run(merged().stateful(Marks).collect())
    run.send("a", [1, Watermark(10), 11])
    run.send("b", [Watermark(2)])
    manual.advance(3)
    run.send("a", [Watermark(12)])
    manual.advance(2)
    assert run.finish() == [1, ("time", 2), 11, ("time", 12)]


def test_a_row_that_has_no_partner_leaves_though_the_other_stream_is_silent() -> None:
    seen: list[Any] = []
    join = entry("a").join(entry("b"), by=abs, within=5, how="left", idle_timeout=4)
    with ManualSystem() as system:
        run = system.run(join.to(seen.append))
        run.send("a", [1, 2, 7])
        system.advance(5)
        assert seen == [(1, None)]
        run.send("b", [-7])
        run.send("a", [9])
        system.advance(5)
        assert seen == [(1, None), (2, -7), (7, -7), (9, -7)]
        run.finish()


def test_rows_within_the_lag_leave_when_nobody_says_anything(manual: ManualSystem) -> None:
    seen: list[Any] = []
    run = manual.run(merged(delay_threshold=3).to(seen.append))
    run.send("a", [1, 5, 4])
    run.send("b", [-2, -6])
    manual.run_until_idle()
    assert seen == [1]
    manual.advance(5)
    assert seen == [1, -2, 4, 5, -6]
    run.finish()


@pytest.mark.parametrize("lanes", [0, 1, 2])
def test_nothing_happens_where_all_streams_are_silent(lanes: int) -> None:
    stream = merged()
    if lanes:
        stream = entry("a").join(
            entry("b"), by=abs, within=5, idle_timeout=4, how="semi", lanes=lanes
        )
    with ManualSystem() as system:
        run = system.run(stream.collect())
        run.send("a", [1])
        run.send("b", [-1])
        system.advance(10)
        admitted = run._work.flow.admitted
        system.advance(1_000)
        assert run._work.flow.admitted == admitted < 10
        assert run.finish()[:1] == [1]


class Late(Timers):
    """Timers that are told when to fire."""

    def __init__(self) -> None:
        super().__init__()
        self.due: list[Callable[[], object]] = []

    def call_after(
        self,
        seconds: float,
        action: Callable[[], object],
        period: float | None = None,
        *,
        at_close: bool = False,
        with_timer: bool = False,
    ) -> Timer:
        self.due.append(action)
        return Timer(self, action, period)


def test_rounds_asked_for_are_added_once_and_again_after_the_seconds_returned() -> None:
    timers = Late()
    answers = [1.0, 1.0, None, None]
    rounds = RoundTimer(timers, lambda: answers.pop(0))
    rounds.ask(1.0)
    rounds.ask(1.0)
    for goes_on in (True, True, False):
        (action,) = timers.due
        timers.due = []
        action()
        assert len(timers.due) == goes_on
    rounds.ask()
    timers.due.pop()()
    assert not timers.due
    assert not answers


def test_a_beat_says_whether_rounds_are_on_their_way() -> None:
    began, may_end = Event(), Event()

    def slow(row: int) -> int:
        began.set()
        may_end.wait(60)
        return row

    graph = entry("a").map(slow).merge(entry("b"), by=int, idle_timeout=1_000).collect()
    with ActorSystem(workers=2) as system:
        run = system.run(graph)
        run.send("a", [1])
        began.wait(60)
        assert beat(ref(run._work), 2.0) == 2.0
        may_end.set()
        run.finish(timeout=60)
        assert beat(ref(run._work), 2.0) is None


@pytest.mark.parametrize("lanes", [1, 2])
def test_rows_let_go_by_an_idle_stream_keep_their_place_among_branches(lanes: int) -> None:
    rows = entry("rows")
    x, y, z = (rows.map(lambda n: n) for _ in range(3))
    join = x.join(
        y.filter(lambda n: n < 3), by=int, within=5, where=lambda left, right: False,
        how="left", idle_timeout=4, lanes=lanes, combine=lambda left, right: 1_000 + left,
    )  # fmt: skip
    graph = join.merge(z, by=int).union(rows).collect()
    with ManualSystem() as system:
        run = system.run(graph)
        for some, seconds in (([1, 2], 3), ([200, 300], 10), ([400], 0)):
            run.send("rows", some)
            system.advance(seconds)
        assert sorted(run.finish()) == sorted(
            [1, 2, 200, 300, 400] * 2 + [1_001, 1_002, 1_200, 1_300, 1_400]
        )


def test_a_watermark_of_the_others_comes_after_the_rows_of_its_round(manual: ManualSystem) -> None:
    rows = entry("rows")
    many = rows.filter(lambda n: n > 0).watermarks(int, every=2)
    few = rows.filter(lambda n: 0 < n < 3).watermarks(int)
    merge = many.merge(few, by=int, idle_timeout=4)
    last = merge.merge(rows.filter(lambda n: n == 77), by=int, late="side")
    graph = Graph(last.collect(name="out"), last.side("late").collect(name="late"))
    run = manual.run(graph)
    # The second one is silent from 0.5 on, which is seen in the round at 4.7.
    for seconds, some in ((0, [0]), (0.5, [1, 2]), (1, [5, 6]), (3.2, [0, 0, 10]), (0.1, [12])):
        manual.advance(seconds)
        run.send("rows", some)
    assert run.finish() == {"out": [1, 1, 2, 2, 5, 6, 10, 12], "late": []}


def test_a_run_that_is_over_or_forgotten_is_not_called() -> None:
    with ManualSystem() as system:
        run = system.run(merged().collect())
        run.send("a", [1])
        run.cancel()
        admitted = run._work.flow.admitted
        system.advance(10)
        assert run._work.flow.admitted == admitted
        run = system.run(merged().collect())
        run.send("a", [1])
        system.run_until_idle()
        with pytest.warns(ResourceWarning, match="never finished"):
            del run
        system.advance(10)


def test_nobody_is_idle_in_a_sequential_run() -> None:
    rows = {"a": range(0, 2_000, 2), "b": range(1, 2_000, 2)}
    graph = entry("a").merge(entry("b"), by=int, idle_timeout=1e-9).collect()
    assert graph.run_sequentially(rows) == list(range(2_000))


@given(st.data(), streams(2), st.integers(0, 1_000), st.sampled_from([0, 2]))
def test_no_row_is_lost(
    data: st.DataObject, rows: list[list[Any]], seed: int, delay_threshold: int
) -> None:
    stream = entry("a").merge(
        entry("b"), by=time_of, idle_timeout=4, delay_threshold=delay_threshold, late="side"
    )
    graph = Graph(stream.collect(name="out"), stream.side("late").collect(name="late"))
    with ManualSystem(seed) as system:
        run = system.run(graph, batch_size=2)
        for name, some in data.draw(arrivals(rows)):
            run.send(name, some)
            system.advance(data.draw(st.sampled_from([0, 1, 3, 6])))
        out = run.finish()
    assert out["out"] == sorted(out["out"], key=lambda row: (row.time, row.stream))
    for number, given_rows in enumerate(rows):
        of_stream = [row for row in out["out"] if row.stream == number]
        assert of_stream == sorted(of_stream, key=lambda row: (row.time, row.number))
        came = [row for row in given_rows if isinstance(row, Row)]
        assert sorted(out["out"] + out["late"]) == sorted(
            row for some in rows for row in some if isinstance(row, Row)
        )
        assert all(row in came for row in of_stream)


def test_branches_that_are_merged_may_be_united_again() -> None:
    rows = entry("rows")
    late = rows.filter(lambda n: n < 3)
    merge = rows.merge(late, by=int, idle_timeout=4)
    with ManualSystem() as system:
        run = system.run(merge.map(lambda n: ("merged", n)).union(rows).collect())
        run.send("rows", [1, 2, 3])
        system.advance(3)
        run.send("rows", [5])
        system.advance(2)
        run.send("rows", [6])
        out = run.finish()
    assert [n for n in out if isinstance(n, int)] == [1, 2, 3, 5, 6]
    assert [n[1] for n in out if isinstance(n, tuple)] == [1, 1, 2, 2, 3, 5, 6]


@pytest.mark.parametrize("model", MODELS)
def test_the_clock_is_that_of_the_system(model: Model) -> None:
    seen: SimpleQueue[Any] = SimpleQueue()
    rows = entry("a").map(int).run_on(model)  # in "manual" a thread of their own runs these
    graph = rows.merge(entry("b"), by=int, idle_timeout=0.02).to(seen.put)
    with ActorSystem(workers=2) as system:
        run = system.run(graph)
        run.send("a", [1, 2])
        assert [seen.get(timeout=60) for _ in range(2)] == [1, 2]
        run.send("a", [3])
        assert seen.get(timeout=60) == 3
        run.finish(timeout=60)


@pytest.mark.parametrize("model", MODELS)
def test_an_idle_stream_is_not_waited_for_whoever_runs_the_operator(model: Model) -> None:
    seen: list[Any] = []
    rows = entry("a").map(int).run_on(model)
    graph = rows.merge(entry("b"), by=abs, idle_timeout=4).map(int).to(seen.append)
    with ManualSystem() as system:
        run = system.run(graph)
        run.send("a", [1, 2])
        system.advance(3)
        assert seen == []
        system.advance(2)
        assert seen == [1, 2]
        run.finish()


def test_one_thread_looks_though_all_that_comes_to_it_is_empty(manual: ManualSystem) -> None:
    seen: list[Any] = []
    rows = entry("a").map(int).run_on("manual").map(int)
    graph = rows.merge(rows.filter(lambda n: n > 5), by=abs, idle_timeout=4).to(seen.append)
    run = manual.run(graph)
    run.send("a", [1, 2])
    manual.advance(3)
    assert seen == []
    manual.advance(2)
    assert seen == [1, 2]
    run.finish()


def test_operators_of_the_caller_look_when_something_is_sent(manual: ManualSystem) -> None:
    seen: list[Any] = []
    run = manual.run(merged().to(seen.append), threading="manual")
    run.send("a", [1])
    manual.advance(10)
    assert seen == []
    run.send("a", [2])
    assert seen == [1, 2]
    run.finish()


def test_a_description_says_it() -> None:
    join = merged().join(entry("c"), by=abs, within=1, idle_timeout=0.5).collect()
    said = join.describe()
    assert "by abs, idle after 4 s" in said
    assert "inner, within 1 by abs, idle after 0.5 s, every pair" in said


@pytest.mark.parametrize("value", [0, math.nan])
def test_a_wrong_idle_time_is_refused(value: Any) -> None:
    with pytest.raises(GraphError, match="idle_timeout must be a number of seconds above 0"):
        entry("a").merge(entry("b"), by=int, idle_timeout=value)
    with pytest.raises(GraphError, match="idle_timeout must be a number of seconds above 0"):
        entry("a").join(entry("b"), by=int, within=1, idle_timeout=value)
