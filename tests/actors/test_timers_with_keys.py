"""Timers with keys, timers of systems, and ticks behind a busy actor."""

from collections.abc import Callable
from typing import Any

import pytest

from callboard import Actor, ActorSystem, BoundedMailbox, PriorityMailbox, Supervision, SystemClosed
from callboard.testing import ManualSystem


class Doing(Actor[Any]):
    """Calls what it is told with itself, and keeps all other messages."""

    def __init__(self, log: list[Any]) -> None:
        self.log = log

    def receive(self, message: Any) -> Any:
        if callable(message):
            return message(self)
        self.log.append(message)
        return None


class Busy(Actor[Any]):
    """Takes some seconds for each message."""

    def __init__(self, seconds: float, log: list[Any]) -> None:
        self.seconds = seconds
        self.log = log

    async def receive(self, message: Any) -> None:
        self.log.append(message)
        await self.sleep(self.seconds)


class Sink:
    """A recipient that is no actor."""

    def tell(self, message: Any) -> None:
        raise NotImplementedError

    def tell_many(self, messages: Any) -> None:
        raise NotImplementedError

    def ask(self, message: Any, timeout: float | None = None) -> Any:
        raise NotImplementedError


def test_a_timer_replaces_the_one_of_its_key(manual: ManualSystem) -> None:
    log: list[Any] = []
    doing = manual.spawn(Doing, log)
    doing.tell(lambda self: self.after(2, "first", key="idle"))
    doing.tell(lambda self: self.after(2, "other", key=("a", "tuple")))
    manual.advance(1)
    doing.tell(lambda self: self.every(2, "second", key="idle"))
    manual.advance(2)
    assert log == ["other", "second"]
    assert doing.ask(lambda self: self.cancel_timer("idle")).result()
    assert not doing.ask(lambda self: self.cancel_timer("idle")).result()
    assert not doing.ask(lambda self: self.cancel_timer("never")).result()
    manual.advance(9)
    assert log == ["other", "second"]


def test_keys_of_timers_that_are_over_are_forgotten_and_can_be_used_anew() -> None:
    log: list[Any] = []
    with ManualSystem() as system:
        doing = system.spawn(Doing, log)
        assert not doing.ask(lambda self: self.cancel_timer("idle")).result()
        doing.tell(lambda self: self.after(1, "first", key="idle"))
        system.advance(1)
        assert not doing.ask(lambda self: self.cancel_timer("idle")).result()
        doing.tell(lambda self: self.after(1, "second", key="idle"))
        system.advance(1)
        assert log == ["first", "second"]
        with pytest.raises(TypeError, match="unhashable"):
            doing.ask(lambda self: self.after(1, "never", key=[])).result()


def test_a_timer_with_a_key_ends_at_a_restart(manual: ManualSystem) -> None:
    def fail(self: Any) -> None:
        self.after(1, "old", key="idle")
        raise LookupError

    log: list[Any] = []
    doing = manual.spawn(Doing, log, supervision=Supervision("restart"))
    doing.tell(fail)
    manual.run_until_idle()
    doing.tell(lambda self: self.after(2, "new", key="idle"))
    manual.advance(5)
    assert log == ["new"]


@pytest.mark.parametrize("mailbox", [None, BoundedMailbox(2), PriorityMailbox(lambda message: 0)])
def test_ticks_behind_a_busy_actor_are_one(mailbox: Any, manual: ManualSystem) -> None:
    log: list[Any] = []
    busy = manual.spawn(Busy, 3.5, log, mailbox=mailbox)
    timer = manual.every(1, "tick", to=busy, coalesce=True)
    manual.advance(10.2)
    # Of the ticks at 1, 2, ... those are sent whose actor has nothing of them to do.
    assert log == ["tick"] * 3
    timer.cancel()
    other: list[Any] = []
    piling = manual.every(1, "tick", to=manual.spawn(Busy, 3.5, other))
    manual.advance(10.2)
    piling.cancel()
    manual.drain(100)
    assert len(other) == 10


def test_an_actors_own_ticks_can_be_coalesced(manual: ManualSystem) -> None:
    class Ticking(Busy):
        def on_start(self) -> None:
            self.every(1, "tick", coalesce=True)

    log: list[Any] = []
    ticking = manual.spawn(Ticking, 2.5, log)
    manual.advance(9.1)
    assert len(log) == 3
    ticking.stop()
    manual.run_until_idle()


def test_a_system_has_timers_for_any_actor(manual: ManualSystem) -> None:
    log: list[Any] = []
    doing = manual.spawn(Doing, log)
    manual.after(1, "once", to=doing)
    never = manual.after(1, "never", to=doing)
    again = manual.every(2, "again", to=doing)
    assert never.cancel()
    manual.advance(5)
    assert log == ["once", "again", "again"]
    assert again.cancel()


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda system: system.after(1, "m", to=5), TypeError, "expected a ref .* got 5"),
        (
            lambda system: system.every(1, "m", to=Sink(), coalesce=True),
            TypeError,
            "coalesce=True works only for timers of actors",
        ),
        (
            lambda system: system.every(
                1,
                "m",
                to=system.spawn(Doing, [], mailbox=BoundedMailbox(2, overflow="drop_oldest")),
                coalesce=True,
            ),
            ValueError,
            "expects a mailbox that drops nothing",
        ),
        (
            lambda system: system.every(1, "m", to=system.spawn(Doing, []), coalesce=1),
            ValueError,
            "coalesce",
        ),
    ],
)
def test_wrong_arguments_are_errors_at_the_call(
    call: Callable[[ManualSystem], Any], kind: type[Exception], text: str
) -> None:
    with ManualSystem() as system, pytest.raises(kind, match=text):
        call(system)


def test_a_system_that_has_stopped_has_no_timers() -> None:
    with ActorSystem(workers=1) as system:
        doing = system.spawn(Doing, [])
    with pytest.raises(SystemClosed, match="it has no timers"):
        system.after(1, "late", to=doing)


# --- messages on their way ------------------------------------------------------------------------


def fire(system: ManualSystem) -> None:
    """Have timers of the next second send in the middle of a message; what they send waits."""
    system._runtime.timers.advance_to(system.now + 1)  # type: ignore[attr-defined]


def anew(self: Doing) -> None:
    self.after(10, "second", key="idle")


def cancelled(self: Doing) -> None:
    self.cancel_timer("idle")


def fails(self: Doing) -> None:
    raise LookupError


@pytest.mark.parametrize("mailbox", [None, BoundedMailbox(9), PriorityMailbox(lambda _: 0)])
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("then", [anew, cancelled, fails])
def test_a_message_of_a_timer_that_was_replaced_or_cancelled_does_not_come(
    mailbox: Any, periodic: bool, then: Callable[[Doing], None]
) -> None:
    log: list[Any] = []
    with ManualSystem() as system:
        doing = system.spawn(Doing, log, mailbox=mailbox, supervision="restart", context="sender")

        def busy(self: Doing) -> None:
            if periodic:
                self.every(1, "first", key="idle", coalesce=mailbox is None)
            else:
                self.after(1, "first", key="idle")
            self.after(1, "without a key")
            self.after(1, "of another key", key="other")
            fire(system)
            then(self)

        doing.tell(busy)
        system.run_until_idle()
        kept = ["without a key"] if then is fails else ["without a key", "of another key"]
        assert sorted(log) == sorted(kept)
        lost = 2 if then is fails else 1
        assert system.dead_letters.reasons.get("cancelled") == lost
        system.advance(20)
        assert sorted(log) == sorted([*kept, "second"] if then is anew else kept)


def test_a_message_of_a_cancelled_timer_does_not_come_from_the_stash(manual: ManualSystem) -> None:
    log: list[Any] = []

    class Stashing(Doing):
        def receive(self, message: Any) -> Any:
            if message == "tick":
                self.stash()
                return None
            return super().receive(message)

    def give_back(self: Doing) -> None:
        self.cancel_timer("key")
        self.become(log.append)
        self.unstash_all()

    ref = manual.spawn(Stashing, log)
    ref.tell(lambda self: self.after(1, "tick", key="key"))
    manual.advance(1)
    ref.tell(give_back)
    manual.run_until_idle()
    assert log == []
    assert manual.dead_letters.reasons == {"cancelled": 1}


def test_a_timer_that_a_thread_cancels_sends_nothing_that_waits_still(manual: ManualSystem) -> None:
    log: list[Any] = []
    doing = manual.spawn(Doing, log)

    def busy(self: Doing) -> None:
        timer = self.after(1, "first", key="idle")
        fire(manual)
        assert not timer.cancel()

    doing.tell(busy)
    manual.run_until_idle()
    assert log == []


def test_a_timer_with_a_key_for_another_recipient_has_sent_what_it_has_sent() -> None:
    log: list[Any] = []
    with ManualSystem() as system:
        doing, other = system.spawn(Doing, log), system.spawn(Doing, log)

        def busy(self: Doing) -> None:
            self.after(1, "sent", to=other, key="key")
            fire(system)
            self.cancel_timer("key")

        doing.tell(busy)
        system.run_until_idle()
        assert log == ["sent"]
