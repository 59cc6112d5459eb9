"""Distributions of times: processing times and waiting times of messages, by class and by actor."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from callboard import Actor, ActorSystem, BoundedMailbox, PriorityMailbox
from callboard.core.monitoring.time_distribution import TimeDistribution
from callboard.observing.watching import SystemView
from callboard.scheduling.monitor import ClassStatistics
from tests.observing.actors import Box, Holder, Passage, Pinger
from tests.tokenless import tokenless
from tests.waiting import in_threads

MANY = 1000  # of these messages at least 32 are stamped


class Sleeper(Actor[float]):
    def receive(self, seconds: float) -> None:
        time.sleep(seconds)


def of(system: ActorSystem, name: str) -> ClassStatistics:
    (found,) = (one for one in system.statistics().classes if one.name == name)
    return found


def test_without_monitoring_there_are_no_times() -> None:
    with ActorSystem(workers=1) as system:
        box = system.spawn(Box)
        box.tell(1)
        system.drain(60)
        assert system.statistics().classes == ()
        assert box._own_times() is None


def test_each_message_has_a_processing_time_and_their_sum_is_that_of_the_dispatches() -> None:
    with ActorSystem(workers=2, monitoring="times", threading="assigned") as system:
        boxes = [system.spawn(Box) for _ in range(4)]
        for box in boxes:
            box.tell_many(range(MANY))
        system.drain(60)
        found = of(system, "Box")
        assert found.messages == found.processing.count == 4 * MANY
        # Dispatches that handled no message, as the first of each, are in the actors' time alone.
        assert 0 < found.processing.total_ns <= sum(box._busy_ns for box in boxes)
        assert found.p50 is not None
        assert found.p99 is not None
        assert found.p50 <= found.p99
        assert found.in_mailbox.count == 0  # nothing is counted at this level


def test_a_slow_message_is_in_the_bucket_of_its_time() -> None:
    with ActorSystem(workers=1, quantum=1, monitoring="times") as system:
        sleeper = system.spawn(Sleeper)
        sleeper.tell_many([0.0] * 10 + [0.05])
        system.drain(60)
        found = of(system, "Sleeper").processing
        bound, count = found.buckets[-1]
        assert count == 1
        assert bound >= 50_000_000
        assert found.percentile(100) == bound / 1e9


def test_dedicated_actors_and_those_that_ended_are_counted() -> None:
    with ActorSystem(workers=1, monitoring="times") as system:
        boxes = [system.spawn(Box, dedicated=i % 2 == 0) for i in range(6)]
        for box in boxes:
            box.tell_many(range(10))
            box.stop(after_queue=True)
        system.drain(60)
        assert all(not box.is_alive for box in boxes)
        assert of(system, "Box").messages == 60


def test_the_time_in_the_mailbox_is_that_from_the_send_to_the_handler() -> None:
    passage = Passage()
    with ActorSystem(workers=1, monitoring="mailboxes") as system:
        holder: Any = system.spawn(Holder)
        box = system.spawn(Box)
        holder.tell(passage)
        assert passage.entered.wait(30)
        box.tell_many(range(MANY))
        sent = time.monotonic_ns()
        while time.monotonic_ns() - sent < 10_000_000:
            pass
        passage.leave.set()
        system.drain(60)
        found = of(system, "Box").in_mailbox
        assert MANY / 31 - 1 <= found.count < MANY
        assert found.buckets[0][0] >= 10_000_000  # none was shorter
        assert found.total_ns >= 10_000_000 * found.count


@pytest.mark.parametrize("capacity", [None, MANY])
def test_bounded_mailboxes_are_measured_and_prioritised_ones_are_not(capacity: int | None) -> None:
    with ActorSystem(workers=1, monitoring="mailboxes") as system:
        mailbox = PriorityMailbox(abs) if capacity is None else BoundedMailbox(capacity)
        box = system.spawn(Box, mailbox=mailbox)
        box.tell_many(range(MANY))
        system.drain(60)
        assert (of(system, "Box").in_mailbox.count > 0) == (capacity is not None)


def test_messages_between_workers_are_measured() -> None:
    with ActorSystem(workers=2, monitoring="workers", threading="assigned") as system:
        ping, pong = system.spawn(Pinger), system.spawn(Pinger)
        ping.tell(pong)
        pong.tell(ping)
        ping.tell(MANY)
        system.drain(60)
        found = of(system, "Pinger")
        assert found.messages == MANY + 3
        assert found.in_mailbox.count > 0
        assert found.mailbox_p50 is not None
        assert found.mailbox_p50 < 60


def test_an_actor_has_its_own_times_from_the_first_question_on() -> None:
    with ActorSystem(workers=1, monitoring="mailboxes") as system:
        one, other = system.spawn(Box), system.spawn(Box)
        one.tell_many(range(MANY))
        system.drain(60)
        own = one._own_times()
        assert own is not None
        assert own[0].count == 0
        one.tell_many(range(MANY))
        other.tell_many(range(MANY))
        system.drain(60)
        own = one._own_times()
        assert own is not None
        assert own[0].count == MANY
        assert 0 < own[1].count < MANY
        assert of(system, "Box").messages == 3 * MANY
        one.stop()
        system.drain(60)
    del one, own


def test_own_times_are_begun_once_however_many_threads_ask() -> None:
    with ActorSystem(workers=1, monitoring="times") as system:
        boxes = [system.spawn(Box) for _ in range(50)]
        barrier = threading.Barrier(4)

        def ask() -> None:
            barrier.wait(30)
            for box in boxes:
                box._own_times()

        in_threads(lambda _: ask(), range(4))
        for box in boxes:
            box.tell(1)
        system.drain(60)
        for box in boxes:
            own = box._own_times()
            assert own is not None
            assert own[0].count == 1


def test_classes_beyond_a_thousand_names_are_counted_together() -> None:
    with ActorSystem(workers=1, monitoring="times") as system:
        for i in range(1010):
            cls = type(f"Made{i}", (Box,), {"__qualname__": f"Made{i}"})
            system.spawn(cls).tell(1)
        system.drain(60)
        classes = system.statistics().classes
        assert len(classes) == 1001
        assert of(system, "(others)").messages == 10


def test_the_table_of_statistics_has_the_percentiles() -> None:
    with ActorSystem(workers=1, monitoring="mailboxes") as system:
        system.spawn(Box).tell_many(range(MANY))
        system.drain(60)
        statistics = system.statistics()
        (line,) = (one for one in str(statistics).splitlines() if one.startswith("Box"))
        assert line.split()[1] == str(MANY)
        assert "mailbox_p99" in str(statistics)
        assert "mailbox_p99" in statistics._repr_html_()


def test_a_view_shows_the_times_since_its_last_look() -> None:
    with ActorSystem(workers=1, monitoring="mailboxes") as system:
        box = system.spawn(Box)
        box.tell_many(range(MANY))
        system.drain(60)
        view = SystemView(system._runtime)
        assert view.look()["classes"][0]["messages"] == MANY
        assert view.look()["classes"] == []
        box.tell(1)
        system.drain(60)
        (row,) = view.look()["classes"]
        assert (row["name"], row["messages"]) == ("Box", 1)
        assert row["p50"] == row["p99"] > 0


def test_percentiles_are_upper_bounds_of_buckets() -> None:
    found = TimeDistribution(2_000, ((10, 50), (20, 49), (40, 1)))
    assert (found.count, found.mean) == (100, 2e-8)
    assert (found.p50, found.p99) == (1e-8, 2e-8)
    assert found.percentile(100) == 4e-8
    assert found.percentile(0) == 1e-8
    assert (found.at_most(9), found.at_most(20)) == (0, 99)
    nothing = TimeDistribution(0, ())
    assert (nothing.count, nothing.mean, nothing.p50) == (0, None, None)
    later = TimeDistribution(2_100, ((10, 50), (20, 51), (40, 1)))
    assert later.since(found) == TimeDistribution(100, ((20, 2),))


def test_workers_that_run_python_at_once_lose_no_time() -> None:
    with tokenless(workers=4, monitoring="workers") as system:
        boxes = [system.spawn(Box) for _ in range(16)]
        for box in boxes:
            box.tell_many(range(MANY))
        system.drain(60)
        assert of(system, "Box").messages == 16 * MANY
