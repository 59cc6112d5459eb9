"""Events of long mailboxes: one when they become long, and one when they are short again."""

from __future__ import annotations

import gc
import logging
import threading
import weakref
from typing import Any

import pytest

from callboard import Actor, ActorSystem, BoundedMailbox, CallboardError, ConfigError
from callboard.observing import MailboxEvent, watch_mailboxes
from callboard.testing import ManualSystem
from tests.observing.actors import Box, Holder, Passage
from tests.waiting import until

LONG_TIME = 3600.0
"""So that only `look()` looks."""


def test_a_mailbox_between_the_two_has_no_further_event(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "callboard")
    with ManualSystem(name="shop") as system:  # its actors take one message in a step
        ref = system.spawn(Box, name="box", mailbox=BoundedMailbox(100))
        events: list[MailboxEvent] = []
        watch = watch_mailboxes(system, high=10, low=4, every=LONG_TIME, to=events.append)

        def kinds_at(messages: int) -> list[str]:
            """Have so many messages wait, and return the kinds of the events at this."""
            ref.tell_many([0] * max(messages - (ref.statistics().queue or 0), 0))
            assert system.run_until(lambda: ref.statistics().queue == messages)
            return [event.kind for event in watch.look()]

        assert kinds_at(9) == []
        assert kinds_at(10) == ["mailbox_high"]
        assert kinds_at(20) == []
        assert kinds_at(5) == []
        assert kinds_at(12) == []
        assert kinds_at(4) == ["mailbox_low"]
        assert kinds_at(4) == []
        assert kinds_at(11) == ["mailbox_high"]
        assert kinds_at(0) == ["mailbox_low"]
    assert [event.kind for event in events] == ["mailbox_high", "mailbox_low"] * 2
    assert events[0] == MailboxEvent("mailbox_high", ref, 10)
    assert "mailbox_high system=shop actor=/box queue=10" in caplog.text
    assert "mailbox_low system=shop actor=/box queue=4" in caplog.text


def test_an_actor_that_ends_is_low_again() -> None:
    passage = Passage()
    with ActorSystem(workers=1, monitoring="mailboxes") as system:
        holder: Any = system.spawn(Holder)
        holder.tell_many([passage, passage, passage])
        assert passage.entered.wait(30)
        watch = watch_mailboxes(system, high=2, every=LONG_TIME)
        assert [event.kind for event in watch.look()] == ["mailbox_high"]
        holder.stop()
        assert watch.look() == []  # it is in its message
        passage.leave.set()
        system.drain(60)
        assert [event.kind for event in watch.look()] == ["mailbox_low"]


def test_events_come_by_themselves_and_to_a_ref() -> None:
    class Listener(Actor[MailboxEvent]):
        def receive(self, event: MailboxEvent) -> None:
            kinds.append(event.kind)

    kinds: list[str] = []
    passage = Passage()
    with ActorSystem(workers=2, monitoring="mailboxes") as system:
        listener = system.spawn(Listener, dedicated=True)
        holder: Any = system.spawn(Holder, mailbox=BoundedMailbox(10))
        with watch_mailboxes(system, high=1, low=0, every=0.01, to=listener):
            holder.tell_many([passage, passage])
            until(lambda: kinds == ["mailbox_high"])
            passage.leave.set()
            until(lambda: kinds == ["mailbox_high", "mailbox_low"])


def test_an_actor_gets_no_event_about_its_own_mailbox(caplog: pytest.LogCaptureFixture) -> None:
    with ManualSystem() as system:
        listener = system.spawn(Box, name="listener", mailbox=BoundedMailbox(10))
        watch = watch_mailboxes(system, high=1, every=LONG_TIME, to=listener)
        listener.tell(0)
        assert watch.look() == [MailboxEvent("mailbox_high", listener, 1)]
        assert listener.statistics().queue == 1
    assert "mailbox_high system=manual actor=/listener queue=1" in caplog.text


def test_a_subscriber_that_looks_changes_no_order() -> None:
    """Neither in its own thread nor in another one."""
    with ManualSystem() as system:
        refs = [system.spawn(Box, mailbox=BoundedMailbox(10)) for _ in range(2)]
        events: list[tuple[str, int]] = []
        meanwhile: list[int] = []
        other = threading.Thread(target=lambda: watch.look())

        def note(event: MailboxEvent) -> None:
            events.append((event.kind, refs.index(event.actor)))
            if len(events) == 1:
                system.run_until_idle()
                watch.look()
                other.start()
                other.join(60)
                meanwhile.append(len(events))

        watch = watch_mailboxes(system, high=1, every=LONG_TIME, to=note)
        for ref in refs:
            ref.tell(0)
        watch.look()
    assert meanwhile == [1]
    kinds = ["mailbox_high", "mailbox_low"]
    assert [[kind for kind, at in events if at == each] for each in (0, 1)] == [kinds, kinds]


def test_a_failing_subscriber_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def fail(event: MailboxEvent) -> None:
        raise ValueError(event.kind)

    passage = Passage()
    with ActorSystem(workers=1, monitoring="mailboxes") as system:
        holder: Any = system.spawn(Holder, mailbox=BoundedMailbox(10))
        holder.tell_many([passage, passage])
        assert passage.entered.wait(30)
        watch = watch_mailboxes(system, high=1, every=LONG_TIME, to=fail)
        assert len(watch.look()) == 1
        passage.leave.set()
    assert "a subscriber of mailboxes' events failed" in caplog.text
    assert watch.look() == []  # the system was stopped


def threads_of_watches() -> int:
    return sum(thread.name.endswith("-mailboxes") for thread in threading.enumerate())


def test_a_watch_ends_with_its_system_or_when_it_is_collected() -> None:
    with ActorSystem(workers=1, monitoring="mailboxes") as system:
        system.spawn(Box)
        watches = [watch_mailboxes(system, high=1, every=0.01)]
        dropped = weakref.ref(watches.pop())
        gc.collect()
        until(lambda: dropped() is None and threads_of_watches() == 0)
        watches.append(watch_mailboxes(system, high=1, every=LONG_TIME))
        assert threads_of_watches() == 1
    until(lambda: threads_of_watches() == 0)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"high": 0}, "`high`"),
        ({"high": 5, "low": 5}, "got 5 and 5"),
        ({"high": 5, "every": 0}, "`every`"),
        ({"high": 5, "to": 5}, "a ref or a function, got 5"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], text: str) -> None:
    with (
        ActorSystem(workers=1, monitoring="mailboxes") as system,
        pytest.raises(ConfigError, match=text),
    ):
        watch_mailboxes(system, **options)


@pytest.mark.parametrize("level", ["off", "times"])
def test_a_system_that_does_not_count_mailboxes_refuses_to_watch_them(level: str) -> None:
    text = f"'shop' counts no mailboxes, because monitoring is '{level}': make it with monitoring="
    with (
        ActorSystem("shop", workers=1, monitoring=level) as system,
        pytest.raises(CallboardError, match=text),
    ):
        watch_mailboxes(system, high=5)
