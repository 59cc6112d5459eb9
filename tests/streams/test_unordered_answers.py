"""Answers that leave as they arrive: a slow one holds up only watermarks and the end."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import Any

import pytest

from callboard import Actor, ActorSystem, Future, Supervision
from callboard.streams import Graph, Run, RunTimeout, Stream, StreamError, Watermark, entry
from callboard.testing import ManualSystem
from tests.remote.conftest import eventually
from tests.streams.answering import ROWS, Doubling, Holding, double, rows

SIZES = pytest.mark.parametrize("size", [1, 3, 64])


class Marked:
    """Gives rows, and the times of watermarks among them."""

    def receive(self, row: Any) -> list[Any]:
        return [row]

    def on_watermark(self, time: Any) -> list[Any]:
        return [("time", time)]


def settle(system: ManualSystem) -> None:
    """Run until nothing is ready, and no timer is due."""
    system.run_until(lambda: False)


# --- the order of answers -------------------------------------------------------------------------


@SIZES
def test_answers_leave_as_they_come(size: int) -> None:
    with ManualSystem() as system:
        ref = system.spawn(Holding)
        run = system.run(rows.ask(ref, ordered=False).collect(), batch_size=size)
        outputs = run.results()
        run.send("rows", range(9))
        settle(system)
        for row in (8, 3, 5, 1, 2, 4, 6, 7, 0):
            ref.tell((row,))
            settle(system)
            assert outputs.take() == [row * 2]
        assert run.finish() == []


@SIZES
@pytest.mark.parametrize("threading", ["dynamic", "dedicated", "assigned"])
def test_a_slow_answer_holds_up_no_other_one_on_threads(size: int, threading: Any) -> None:
    with ActorSystem(workers=2) as system:
        ref = system.spawn(Holding)
        graph = rows.ask(ref, ordered=False).collect()
        run = system.run(graph, batch_size=size, threading=threading)
        outputs = run.results()
        run.send("rows", range(9))
        for row in range(8, 0, -1):
            while row not in ref.ask("asked").result(60):
                pass
            ref.tell((row,))
            assert next(outputs) == row * 2  # or the test hangs, since 0 has no answer yet
        ref.tell((0,))
        assert run.finish(timeout=60) == [0]


def test_a_coroutine_that_is_slow_holds_up_no_other_one() -> None:
    gate = threading.Event()

    async def wait(row: int) -> int:
        while row == 0 and not gate.is_set():
            await asyncio.sleep(0)
        return row

    with ActorSystem(workers=1) as system:
        run = system.run(rows.map(wait, in_flight=2, ordered=False).collect(), batch_size=4)
        outputs = run.results()
        run.send("rows", range(12))
        assert [next(outputs) for _ in range(11)] == list(range(1, 12))
        gate.set()
        assert run.finish(timeout=60) == [0]


def test_rows_that_have_begun_are_no_more_than_in_flight(manual: ManualSystem) -> None:
    ref = manual.spawn(Holding)
    graph = rows.ask(ref, in_flight=3, ordered=False).collect()
    run = manual.run(graph, batch_size=2)
    run.send("rows", [0, 1, Watermark(1), *range(2, 20)])
    settle(manual)
    assert ref.ask("asked").result() == [0, 1, 2]
    ref.tell((2,))  # its answer waits behind the watermark, and is one of the three
    settle(manual)
    assert ref.ask("asked").result() == [0, 1]
    ref.tell((1,))
    settle(manual)
    assert ref.ask("asked").result() == [0, 3]
    while ref.ask("asked").result():
        ref.tell("answer")
        settle(manual)
    assert ref.ask("most").result() == 3
    assert sorted(run.finish()) == [row * 2 for row in range(20)]


def sent_until_full(system: ManualSystem, run: Run[Any]) -> int:
    """Send rows until there is no room for two more, and return how many went in."""
    for sent in range(0, 100, 2):
        try:
            run.send("rows", [sent, sent + 1], timeout=0.0)
        except RunTimeout:
            return sent
        settle(system)
    raise AssertionError("there is room for 100 rows")


@pytest.mark.parametrize("window", [1, 2, 4])
def test_a_full_window_holds_the_sender_up_and_answers_let_it_go_on(window: int) -> None:
    with ManualSystem() as system:
        ref = system.spawn(Holding)
        graph = rows.ask(ref, in_flight=3, ordered=False).collect()
        run = system.run(graph, batch_size=2, window=window)
        sent = sent_until_full(system, run)
        assert sent <= 2 * (window + 1)  # rows of one round more: those that have begun
        while ref.ask("asked").result():
            ref.tell("answer")
            settle(system)
        run.send("rows", [sent], timeout=0.0)
        settle(system)
        ref.tell("answer")
        assert sorted(run.finish()) == [row * 2 for row in range(sent + 1)]


# --- watermarks and the end -----------------------------------------------------------------------


@SIZES
def test_watermarks_overtake_no_row_and_are_overtaken_by_none(size: int) -> None:
    with ManualSystem() as system:
        ref = system.spawn(Holding)
        graph = rows.ask(ref, ordered=False).stateful(Marked).collect()
        run = system.run(graph, batch_size=size)
        outputs = run.results()
        run.send("rows", [0, 1, Watermark(1), 2, 3, Watermark(3), Watermark(4), 5])
        settle(system)
        assert outputs.take() == []
        for row, left in (
            (5, []),
            (1, [2]),
            (3, []),
            (0, [0, ("time", 1), 6]),
            (2, [4, ("time", 3), ("time", 4), 10]),
        ):
            ref.tell((row,))
            settle(system)
            assert outputs.take() == left
        assert run.finish() == []


def test_the_end_waits_for_all_answers() -> None:
    with ActorSystem(workers=1) as system:
        ref = system.spawn(Holding)
        run = system.run(rows.ask(ref, ordered=False).count().collect(), batch_size=2)
        run.send("rows", range(5))
        finished = run.afinish()
        while len(ref.ask("asked").result(60)) < 5:
            pass
        ref.tell((3,))
        assert ref.ask("asked").result(60) == [0, 1, 2, 4]
        assert not finished.done()
        ref.tell("answer")
        assert finished.result(60) == [1, 2, 3, 4, 5]


def test_a_snapshot_waits_for_all_answers_and_a_run_goes_on_with_it() -> None:
    with ActorSystem(workers=1) as system:
        ref = system.spawn(Holding)
        graph = rows.ask(ref, ordered=False).count().collect()
        run = system.run(graph, batch_size=2)
        run.send("rows", range(5))
        while len(ref.ask("asked").result(60)) < 5:
            pass
        ref.tell((3,))
        taken = run.asnapshot(timeout=60)
        assert ref.ask("asked").result(60) == [0, 1, 2, 4]
        assert not taken.done()
        ref.tell("answer")
        snapshot = taken.result(60)
        run.cancel()
        again = system.run(graph, restore=snapshot)
        again.send("rows", [5])
        while not ref.ask("asked").result(60):
            pass
        ref.tell("answer")
        assert again.finish(60) == [1, 2, 3, 4, 5, 6]


def test_two_such_operators_one_behind_the_other(manual: ManualSystem) -> None:
    first, second = manual.spawn(Holding), manual.spawn(Holding)
    both = rows.ask(first, ordered=False).ask(second, ordered=False)
    run = manual.run(both.collect(), batch_size=4)
    outputs = run.results()
    run.send("rows", range(1, 5))
    settle(manual)
    for row in (4, 2, 1, 3):
        first.tell((row,))
        settle(manual)
    for row in (2, 8, 6, 4):
        second.tell((row,))
        settle(manual)
        assert outputs.take() == [row * 2]
    run.finish()


# --- branches, and runs without a system ----------------------------------------------------------


def test_answers_are_in_order_where_branches_meet(manual: ManualSystem) -> None:
    ref = manual.spawn(Holding)
    both = rows.ask(ref, ordered=False).union(rows.map(lambda row: -row))
    run = manual.run(both.collect(), batch_size=4)
    run.send("rows", range(6))
    settle(manual)
    ref.tell("answer")  # the latest first
    assert run.finish() == [each for row in range(6) for each in (row * 2, -row)]


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("threading", ["dynamic", "assigned", "dedicated"])
def test_no_lane_waits_where_answers_branch_and_meet(ordered: bool, threading: Any) -> None:
    with ActorSystem(workers=2) as system:
        ref = system.spawn(Holding)
        answers = rows.ask(ref, in_flight=4, ordered=ordered, errors="side", name="ask")
        even, odd = answers.branch(lambda row: row % 4 == 0)
        graph = even.union(odd).union(answers.failures).collect()
        run = system.run(graph, batch_size=1, threading=threading)
        run.send("rows", range(4))
        while len(ref.ask("asked").result(60)) < 4:  # rows of four batches at a time
            pass
        ref.tell("answer")
        assert run.finish(60) == [0, 2, 4, 6]


def test_a_sequential_run_gives_answers_in_order() -> None:
    with ActorSystem(workers=1) as system:
        graph = rows.ask(system.spawn(Doubling), ordered=False).collect()
        assert graph.run_sequentially({"rows": ROWS}) == [row * 2 for row in ROWS]


def test_the_description_says_that_answers_leave_as_they_come() -> None:
    described = rows.map(double, in_flight=64, ordered=False).collect().describe()
    assert "double   map, 64 at a time, answers as they come, of rows" in described


# --- errors ---------------------------------------------------------------------------------------


async def fail(row: int) -> int:
    await asyncio.sleep(0)
    if row % 10 == 7:
        raise ValueError(row)
    return row


def test_rows_that_fail_are_skipped_or_go_to_the_side_as_they_come() -> None:
    good = [row for row in range(40) if row % 10 != 7]
    with ActorSystem(workers=2) as system:
        graph = rows.map(fail, in_flight=5, ordered=False, errors="skip").collect()
        run = system.run(graph, batch_size=3)
        run.send("rows", range(40))
        assert sorted(run.finish(timeout=60)) == good
        assert sum(run.row_counts.skips.values()) == 4
        side = rows.map(fail, in_flight=5, ordered=False, errors="side")
        parts = Graph(side.collect(name="good"), side.failures.collect(name="bad"))
        parted = system.run(parts, batch_size=3)
        parted.send("rows", range(40))
        found = parted.finish(timeout=60)
        assert sorted(found["good"]) == good
        assert sorted((each.serial, each.row) for each in found["bad"]) == [
            (row, row) for row in (7, 17, 27, 37)
        ]


def test_a_row_that_fails_ends_the_run_though_an_earlier_one_has_no_answer() -> None:
    late: Future[int] = Future()

    class Refusing(Actor[int]):
        def receive(self, message: int) -> Any:
            if message == 3:
                raise ValueError(message)
            return message if message else late

    with ManualSystem() as system:
        seen: list[int] = []
        ref = system.spawn(Refusing, supervision=Supervision("resume"))
        run = system.run(rows.ask(ref, ordered=False).to(seen.append), batch_size=2)
        run.send("rows", range(9))
        with pytest.raises(StreamError, match="failed at input 3, 3"):
            run.finish()
        assert seen == [1, 2]
        late.set_result(0)


def test_rows_before_a_failure_upstream_are_waited_for(manual: ManualSystem) -> None:
    def refuse(row: int) -> int:
        if row == 3:
            raise ValueError(row)
        return row

    seen: list[int] = []
    ref = manual.spawn(Holding)
    run = manual.run(rows.map(refuse).ask(ref, ordered=False).to(seen.append), batch_size=1)
    run.send("rows", range(4))
    settle(manual)
    ref.tell((2,))
    settle(manual)
    ref.tell("answer")
    with pytest.raises(StreamError, match="'refuse' failed"):
        run.finish()
    assert sorted(seen) == [0, 2, 4]


def test_a_cancelled_run_waits_for_no_answer() -> None:
    with ActorSystem(workers=1) as system:
        ref = system.spawn(Holding)
        run = system.run(rows.ask(ref, ordered=False).collect(), batch_size=2)
        outputs = run.results()
        run.send("rows", range(5))
        while 4 not in ref.ask("asked").result(60):
            pass
        ref.tell((4,))
        assert next(outputs) == 8
        run.cancel(timeout=60)
        eventually(lambda: not run._work.is_anybody_at_work(), "no thread is at work")
        ref.ask("answer").result(60)  # answers that nobody waits for any more


# --- random graphs --------------------------------------------------------------------------------


class Dawdling:
    """Answers each row after some turns of the event loop, as a seed says."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    async def answer(self, row: int) -> int:
        for _ in range(self.chance.choice([0, 0, 1, 3, 40])):
            await asyncio.sleep(0)
        if row % 11 == 10:
            raise ValueError(row)
        return row + 1


def is_kept(n: int, row: int) -> int:
    return row % (n + 1)


def some_rows(n: int, row: int) -> range:
    return range(row, row + row % n)


def random_graph(seed: int, *, ordered: bool) -> Graph[Any]:
    """Make a chain of operators that look at each row alone, some of which wait for answers."""
    chance = random.Random(seed)
    stream: Stream[Any] = entry("rows")
    for place in range(chance.randint(2, 4)):
        n, what = chance.randint(1, 9), chance.choice(["answer", "answer", "filter", "flat_map"])
        if what == "filter" and place:
            stream = stream.filter(partial(is_kept, n))
        elif what == "flat_map" and place:
            stream = stream.flat_map(partial(some_rows, n))
        else:
            answer = Dawdling(seed + place).answer
            stream = stream.map(answer, in_flight=n, ordered=ordered, errors="skip")
    return stream.stateful(Marked).collect()


def between_watermarks(outputs: Iterable[Any]) -> list[Any]:
    parts: list[Any] = [Counter()]
    for each in outputs:
        if isinstance(each, tuple):
            parts += [each, Counter()]
        else:
            parts[-1][each] += 1
    return parts


@pytest.mark.parametrize("seed", range(20))
def test_between_watermarks_random_graphs_give_what_they_give_in_order(seed: int) -> None:
    chance = random.Random(seed)
    sent = [
        Watermark(row) if chance.random() < 0.1 else row for row in range(chance.randint(0, 120))
    ]
    wanted = between_watermarks(random_graph(seed, ordered=True).run_sequentially({"rows": sent}))
    options = {"batch_size": chance.choice([1, 2, 7, 64]), "window": chance.choice([1, 2, 4, 16])}
    with ManualSystem(seed) as system:
        run = system.run(random_graph(seed, ordered=False), **options)
        run.send("rows", sent)
        assert between_watermarks(run.finish()) == wanted
    with ActorSystem(workers=2) as system:
        run = system.run(random_graph(seed, ordered=False), **options)
        run.send("rows", sent)
        assert between_watermarks(run.finish(timeout=60)) == wanted


@pytest.mark.parametrize("seed", range(5))
def test_a_manual_system_replays_answers_as_they_come(seed: int) -> None:
    outputs = []
    for _ in range(2):
        with ManualSystem(seed) as system:
            run = system.run(random_graph(seed, ordered=False), batch_size=3)
            run.send("rows", ROWS[:60])
            outputs.append((run.finish(), list(map(str, system.trace))))
    assert outputs[0] == outputs[1]
