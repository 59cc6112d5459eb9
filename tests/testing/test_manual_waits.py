"""Asks and sends to full mailboxes, in a manual system: waiting runs the system."""

from __future__ import annotations

import pytest

from callboard import Actor, ActorRef, AskTimeout, BoundedMailbox, MailboxFull
from callboard.testing import ManualSystem
from tests.testing.actors import Forward, Patient, Sum


def test_waiting_for_an_answer_runs_the_system(manual: ManualSystem) -> None:
    ref = manual.spawn(Sum)
    assert ref.ask(2).result() == 2
    assert ref.ask(3).result(timeout=1.0) == 5


def test_an_answer_that_cannot_come_is_not_waited_for(manual: ManualSystem) -> None:
    class Stasher(Actor[str]):
        def receive(self, message: str) -> None:
            self.stash()

    ref = manual.spawn(Stasher, name="stasher")
    with pytest.raises(AskTimeout, match=r"/stasher.*is idle"):
        ref.ask("hello?").result()
    with pytest.raises(AskTimeout, match=r"/stasher.* in 5 s"):
        ref.ask("hello?").result(timeout=5)
    assert manual.now == 5.0


def test_waiting_for_an_answer_lets_the_clock_go_on(manual: ManualSystem) -> None:
    ref = manual.spawn(Patient)
    assert ref.ask(90.0).result() == "waited 90 s"
    assert manual.now == 90.0
    with pytest.raises(AskTimeout):
        ref.ask(60.0).result(timeout=30.0)
    assert manual.now == 120.0


def test_an_asks_own_timeout_is_logical(manual: ManualSystem) -> None:
    answer = manual.spawn(Patient).ask(30.0, timeout=10.0)
    manual.advance(9.0)
    assert not answer.done()
    manual.advance(1.0)
    with pytest.raises(AskTimeout, match=r"in 10\.0 s"):
        answer.result()


def test_a_dedicated_actor_may_wait_for_an_answer(manual: ManualSystem) -> None:
    class Asker(Actor[int]):
        def __init__(self, other: ActorRef[int]) -> None:
            self.other = other

        def receive(self, message: int) -> int:
            answer: int = self.other.ask(message).result()
            return answer + 1

    inner = manual.spawn(Asker, manual.spawn(Sum), dedicated=True)
    outer = manual.spawn(Asker, inner, dedicated=True)
    assert outer.ask(10).result() == 12


@pytest.mark.parametrize("overflow", ["block", "help"])
def test_a_sender_to_a_full_mailbox_runs_the_system_instead_of_sleeping(overflow: str) -> None:
    with ManualSystem() as system:
        probe = system.probe()
        narrow = system.spawn(Forward, probe.ref, mailbox=BoundedMailbox(2, overflow))
        narrow.tell_many(range(20))
        wide = system.spawn(Forward, narrow, 20)
        wide.tell("x")
        system.run_until_idle()
        assert probe.messages == [*range(20), *["x"] * 20]


@pytest.mark.parametrize("overflow", ["block", "help"])
def test_a_full_mailbox_that_nobody_can_empty_is_an_error_at_once(overflow: str) -> None:
    with ManualSystem() as system:
        mailbox = BoundedMailbox(1, overflow, timeout=600.0)
        ref = system.spawn(Patient, name="patient", mailbox=mailbox)
        ref.tell(3600.0)
        system.run_until_idle()  # in the middle of its message now
        ref.tell(0.0)
        with pytest.raises(MailboxFull, match=r"/patient is full \(1 messages\)"):
            ref.tell(0.0)
        ref.stop()


def test_a_throttled_sender_goes_on_when_nothing_is_ready(manual: ManualSystem) -> None:
    ref = manual.spawn(Patient, mailbox=BoundedMailbox(1, "throttle", timeout=600.0))
    ref.tell_many([3600.0, 0.0, 0.0, 0.0])
    manual.run_until_idle()
    assert ref.statistics().queue == 3
    ref.stop()


@pytest.mark.parametrize("overflow", ["block", "help", "throttle"])
def test_a_sender_waits_for_room_by_steps_and_not_by_the_clock_on_the_wall(overflow: str) -> None:
    with ManualSystem() as system:
        probe = system.probe()
        # Shorter than the step that makes room takes.
        ref = system.spawn(Forward, probe.ref, mailbox=BoundedMailbox(1, overflow, timeout=1e-9))
        ref.tell(1)
        ref.tell(2)
        assert ref.statistics().queue == 1
        system.run_until_idle()
        assert probe.messages == [1, 2]


def test_a_sender_does_not_wait_for_room_longer_than_a_run_may_be() -> None:
    class Restless(Actor[int]):
        def receive(self, message: int) -> None:
            self.ref.tell(message)

    with ManualSystem(max_steps=1000) as system:
        full = system.spawn(Patient, name="full", mailbox=BoundedMailbox(1))
        full.tell(3600.0)
        system.run_until_idle()
        full.tell(0.0)
        restless = system.spawn(Restless)
        restless.tell(1)
        with pytest.raises(MailboxFull, match=r"/full stayed full .* for all the steps"):
            full.tell(0.0)
        restless.stop()
        full.stop()
