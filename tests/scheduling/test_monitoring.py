"""Monitoring: what each level measures, that the sums are right, and the workers' records."""

import re
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from callboard import (
    Actor,
    ActorRef,
    ActorSystem,
    BoundedMailbox,
    PriorityMailbox,
)
from callboard.observing import FlightRecorder
from callboard.scheduling.monitor import Statistics
from tests.observing.actors import Pinger
from tests.observing.text_traces import DISPATCH, WAIT, dispatches, recorded

Hold = Callable[[ActorSystem], AbstractContextManager[None]]

LEVELS = ["times", "mailboxes", "channels", "workers"]
KEPT = FlightRecorder(seconds=3600)


class Box(Actor[Any]):
    def receive(self, message: int) -> None:
        while message > 0:
            message -= 1


def ping_pong(system: ActorSystem, rounds: int) -> tuple[ActorRef[Any], ActorRef[Any]]:
    ping, pong = system.spawn(Pinger, name="ping"), system.spawn(Pinger, name="pong")
    ping.tell(pong)
    pong.tell(ping)
    ping.tell(rounds)
    system.drain()
    return ping, pong


class Held:
    """Keeps an actor in the middle of a message for most of a test, and knows how long at least.

    To be made before the system: what is charged to its actors is then no more than `elapsed()`.
    """

    def __init__(self) -> None:
        self._began = time.monotonic_ns()
        self._entered, self._leave = threading.Event(), threading.Event()

    def stay(self) -> None:
        """The actor: stay here until let go."""
        self._entered.set()
        assert self._leave.wait(60)

    def let_go(self) -> int:
        """The test: when the actor has stayed for most of the time so far, the nanoseconds."""
        assert self._entered.wait(30)
        since = time.monotonic_ns()
        while (stayed := time.monotonic_ns() - since) < 5 * (since - self._began):
            pass
        self._leave.set()
        return stayed

    def elapsed(self) -> int:
        """All the nanoseconds so far."""
        return time.monotonic_ns() - self._began


# --- statistics -----------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["off", *LEVELS])
@pytest.mark.parametrize("workers", [1, 2])
def test_every_level_counts_messages_and_dispatches(level: str, workers: int) -> None:
    with ActorSystem(monitoring=level, workers=workers, threading="assigned") as system:
        ping_pong(system, 1000)
        statistics = system.statistics()
    assert statistics.monitoring == level
    assert [actor.path for actor in statistics.actors] == ["/ping", "/pong"]
    assert sum(actor.messages for actor in statistics.actors) == 2 + 1001
    assert [worker.name for worker in statistics.workers] == [
        f"callboard-{i}" for i in range(workers)
    ]
    for actor in statistics.actors:
        assert actor.dispatches > 0
    handled = sum(actor.dispatches for actor in statistics.actors)
    assert sum(worker.dispatches for worker in statistics.workers) >= handled


def test_off_measures_no_time_and_no_queue() -> None:
    with ActorSystem(workers=1) as system:
        ping, _ = ping_pong(system, 10)
        statistics = system.statistics()
        assert ping._busy_ns == 0
    for actor in statistics.actors:
        assert (actor.total, actor.mean, actor.queue, actor.peak) == (None, None, None, None)
    assert [worker.busy for worker in statistics.workers] == [None]
    assert statistics.workers[0].waits > 0


def test_times_are_measured_and_queues_are_not() -> None:
    with ActorSystem(monitoring="times") as system:
        ping_pong(system, 10)
        for actor in system.statistics().actors:
            assert actor.total is not None
            assert actor.mean is not None
            assert actor.total > 0
            assert actor.mean == pytest.approx(actor.total / actor.messages)
            assert (actor.queue, actor.peak) == (None, None)


@pytest.mark.parametrize("level", ["mailboxes", "channels", "workers"])
def test_queues_are_counted_and_their_peaks_kept(level: str, hold: Hold) -> None:
    with ActorSystem(monitoring=level) as system:
        box = system.spawn(Box, name="box")
        with hold(system):
            box.tell_many([0] * 7)
            waiting = system.statistics().of("/box")
            assert (waiting.queue, waiting.peak, waiting.messages) == (7, 7, 0)
        system.drain()
        after = system.statistics().of("/box")
        assert (after.queue, after.peak, after.messages) == (0, 7, 7)


@pytest.mark.parametrize("level", ["off", "mailboxes"])
def test_drops_and_refusals_are_counted(level: str, hold: Hold) -> None:
    with ActorSystem(monitoring=level) as system:
        box = system.spawn(Box, name="box", mailbox=BoundedMailbox(5, "drop_newest"))
        with hold(system):
            box.tell_many([0] * 12)
        system.drain()
        found = system.statistics().of("/box")
    assert (found.messages, found.dropped, found.peak) == (5, 7, 5)


def test_each_actor_is_charged_for_its_own_messages() -> None:
    class Slow(Actor[Any]):
        def receive(self, message: Held) -> None:
            message.stay()

    held = Held()
    with ActorSystem(monitoring="times") as system:
        slow, quick = system.spawn(Slow, name="slow"), system.spawn(Box, name="quick")
        slow.tell(held)
        quick.tell(0)
        stayed = held.let_go()
        system.drain()
        statistics = system.statistics()
        elapsed = held.elapsed()
    slow_mean, quick_mean = statistics.of("/slow").mean, statistics.of("/quick").mean
    assert slow_mean is not None
    assert quick_mean is not None
    assert slow_mean * 1e9 >= stayed - 1
    assert (slow_mean + quick_mean) * 1e9 <= elapsed + 1


class Waiter(Actor[Any]):
    """Works between two waits, in the middle of a message."""

    async def receive(self, message: int | Held) -> None:
        await self.sleep(0)
        if isinstance(message, Held):
            message.stay()
        else:
            while message > 0:
                message -= 1
        await self.sleep(0)


class Helper(Actor[Any]):
    """Fills a small mailbox, so that its worker runs the receiver within this dispatch."""

    def __init__(self, target: ActorRef[Any]) -> None:
        self.target = target

    def receive(self, message: Any) -> None:
        for _ in range(20):
            self.target.tell(message)


@pytest.mark.parametrize("workers", [1, 3])
def test_the_actors_times_add_up_to_the_workers(workers: int) -> None:
    began = time.monotonic_ns()
    with ActorSystem(monitoring="times", workers=workers) as system:
        box = system.spawn(Box, mailbox=BoundedMailbox(2, "help"))
        actors = [
            box,
            system.spawn(Waiter),
            system.spawn(Helper, box),
            system.spawn(Box, mailbox=PriorityMailbox(key=lambda number: number)),
        ]
        for actor in actors:
            actor.tell_many([2000] * 20)
        system.drain()
        workers_ns = sum(worker.busy or 0.0 for worker in system.statistics().workers) * 1e9
        actors_ns = sum(actor._busy_ns for actor in actors)
    assert actors_ns == pytest.approx(workers_ns, abs=1)
    assert 0 < actors_ns <= workers * (time.monotonic_ns() - began)
    assert all(actor._busy_ns > 0 for actor in actors)


def test_an_actor_is_not_charged_for_those_that_run_within_its_dispatch() -> None:
    class Inner(Box):
        def receive(self, message: Any) -> None:
            if isinstance(message, Held):
                message.stay()

    held = Held()
    with ActorSystem(monitoring="times") as system:
        inner = system.spawn(Inner, mailbox=BoundedMailbox(2, "help"))
        helper = system.spawn(Helper, inner)
        helper.tell(held)
        stayed = held.let_go()
        system.drain()
        inner_ns, helper_ns = inner._busy_ns, helper._busy_ns
        elapsed = held.elapsed()
    assert inner.statistics().messages == 20
    assert inner_ns >= stayed
    assert inner_ns + helper_ns <= elapsed


def test_an_async_actors_work_after_a_wait_is_its_own() -> None:
    held = Held()
    with ActorSystem(monitoring="times") as system:
        waiter, box = system.spawn(Waiter), system.spawn(Box)
        waiter.tell(held)
        box.tell(0)
        stayed = held.let_go()
        system.drain()
        waiter_ns, box_ns = waiter._busy_ns, box._busy_ns
        elapsed = held.elapsed()
    assert waiter_ns >= stayed
    assert waiter_ns + box_ns <= elapsed


def test_waits_and_idle_time_grow_while_nothing_happens() -> None:
    with ActorSystem(workers=1) as system:
        box = system.spawn(Box)
        box.ask(0).result(30)
        system.drain()
        (before,) = system.statistics().workers
        box.ask(0).result(30)
        system.drain()
        (after,) = system.statistics().workers
    assert after.waits > before.waits
    assert after.idle > before.idle


def test_a_workers_busy_and_idle_time_are_no_more_than_there_was() -> None:
    began = time.monotonic()
    with ActorSystem(workers=1, monitoring="times") as system:
        ping_pong(system, 5000)
        (worker,) = system.statistics().workers
        elapsed = time.monotonic() - began
    assert worker.busy is not None
    assert worker.busy + worker.idle <= elapsed


def test_children_and_dedicated_workers_are_listed() -> None:
    class Parent(Actor[Any]):
        def receive(self, message: Any) -> str:
            return self.spawn(Box, name="child").path

    with ActorSystem(workers=1, monitoring="times") as system:
        parent = system.spawn(Parent, name="parent", dedicated=True)
        assert parent.ask("spawn").result(30) == "/parent/child"
        system.drain()
        statistics = system.statistics()
    assert [actor.path for actor in statistics.actors] == ["/parent", "/parent/child"]
    assert [worker.name for worker in statistics.workers] == ["callboard-0", "callboard-parent"]
    assert statistics.of("/parent").worker == "callboard-parent"
    assert statistics.of("/parent").total
    with pytest.raises(KeyError, match="/nobody"):
        statistics.of("/nobody")


def test_statistics_show_as_two_tables() -> None:
    statistics = Statistics("times", actors=(), workers=())
    assert str(statistics).splitlines() == [
        "worker  dispatches  busy  idle  waits",
        "",
        "actor  worker  messages  dispatches  total  mean  queue  peak  dropped  waits_for",
    ]
    with ActorSystem("show", workers=1, monitoring="times") as system:
        box = system.spawn(Box, name="box")
        box.ask(5).result(30)
        system.drain()
        lines = str(system.statistics()).splitlines()
    assert len({len(line) for line in lines[:2]}) == 1
    assert re.fullmatch(r"show-0 +\d+ +\S+ [mu]?s +\S+ [mu]?s +\d+", lines[1])
    figures = r"/box +show-0 +1 +\d+ +\S+ [mu]?s +\S+ [mu]?s +- +- +0"
    assert re.fullmatch(figures + " +a message", lines[4])


# --- records --------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", LEVELS)
def test_there_is_a_record_of_each_dispatch(level: str) -> None:
    with ActorSystem(monitoring=level, workers=1, trace=KEPT) as system:
        system.spawn(Box).tell(1)
        system.drain()  # from here on the worker waits, and the next message ends that
        ping_pong(system, 1000)
        lines = recorded(system)
        statistics = system.statistics()
    found = dispatches(lines)
    waits = [line for line in lines if WAIT.fullmatch(line)]
    assert len(found) + len(waits) == len(lines)
    assert bool(waits) == (level == "workers")
    with_messages = [line for line in found if line.messages]  # a start may be alone
    assert all((line.queue is None) == (level == "times") for line in with_messages)
    messages: dict[str, int] = defaultdict(int)
    spent: dict[str, int] = defaultdict(int)
    counts: dict[str, list[int]] = defaultdict(list)
    for line in found:
        messages[line.path] += line.messages
        spent[line.path] += line.spent
        counts[line.path].append(line.dispatch)
    for actor in statistics.actors:
        assert actor.total is not None
        assert messages[actor.path] == actor.messages
        assert spent[actor.path] == pytest.approx(actor.total * 1e9, abs=1)
        assert counts[actor.path] == list(range(1, actor.dispatches + 1))
    times = [int(line.split()[0]) for line in lines]
    assert times == sorted(times)


def test_waits_are_numbered_and_add_up_to_the_idle_time() -> None:
    with ActorSystem("net", workers=1, monitoring="workers", trace=KEPT) as system:
        box = system.spawn(Box)
        for _ in range(20):
            box.ask(0).result(30)
        system.drain()
        # An idle worker may still wake and be idle again, so the trace is between two counts.
        (before,) = system.statistics().workers
        waits = [match for line in recorded(system) if (match := WAIT.fullmatch(line))]
        (after,) = system.statistics().workers
    assert [int(match[3]) for match in waits] == list(range(1, len(waits) + 1))
    assert {match[2] for match in waits} == {"net-0"}
    # The counts have the wait that is not over yet, and no line is written before one is.
    assert before.waits - 1 <= len(waits) <= after.waits
    assert sum(int(match[4].replace(".", "")) for match in waits) <= round(after.idle * 1e9)


def test_reading_while_the_workers_run_gives_whole_records_and_growing_counts() -> None:
    recorder = FlightRecorder(seconds=3600, limit=200_000)
    with ActorSystem(monitoring="workers", workers=2, trace=recorder) as system:
        ping, pong = system.spawn(Pinger, name="ping"), system.spawn(Pinger, name="pong")
        ping.tell(pong)
        pong.tell(ping)
        ping.tell(200_000)
        draining = threading.Thread(target=system.drain)
        draining.start()
        messages = 0
        while draining.is_alive():
            for line in recorded(system):
                assert DISPATCH.fullmatch(line) or WAIT.fullmatch(line), line
            now = sum(actor.messages for actor in system.statistics().actors)
            assert now >= messages
            messages = now
        assert sum(actor.messages for actor in system.statistics().actors) == 200_003
