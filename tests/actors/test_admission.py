"""Messages that a full mailbox does not accept, for each kind of receiver."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from callboard import Actor, ActorRef, ActorSystem, BoundedMailbox, DeadLetter, MailboxFull
from callboard.native import NativeActor


class Interrupted(BaseException):
    """What Ctrl-C raises, as these tests have it."""


class Held(Actor[Any]):
    gate: threading.Event
    entered: threading.Event

    def on_start(self) -> None:
        self.entered.set()
        assert self.gate.wait(30)

    def receive(self, message: Any) -> Any:
        return message


class HeldNative(NativeActor):
    gate: threading.Event
    entered: threading.Event

    def on_start(self) -> None:
        self.entered.set()
        assert self.gate.wait(30)


class Full:
    """An actor whose mailbox of one message has it."""

    def __init__(self, system: ActorSystem, base: Any, overflow: str) -> None:
        self.gate, entered = threading.Event(), threading.Event()
        cls = type(base.__name__, (base,), {"gate": self.gate, "entered": entered})
        mailbox = BoundedMailbox(1, overflow)
        self.ref: ActorRef[Any] = system.spawn(cls, mailbox=mailbox, dedicated=True)
        assert entered.wait(30)
        self.ref.tell(0)


kinds = pytest.mark.parametrize("kind", [Held, HeldNative])


@pytest.fixture
def letters(system: ActorSystem) -> list[DeadLetter]:
    found: list[DeadLetter] = []
    system.dead_letters.subscribe(found.append)
    return found


@contextmanager
def interrupted_soon() -> Iterator[None]:
    def interrupt(*_: object) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@kinds
@pytest.mark.parametrize("way", ["tell", "ask", "tell_many"])
def test_ctrl_c_ends_a_wait_for_room(kind: Any, way: str, system: ActorSystem) -> None:
    full = Full(system, kind, "block")
    send: Any = getattr(full.ref, way)
    try:
        with pytest.raises(Interrupted), interrupted_soon():
            send([1] if way == "tell_many" else 1)
        assert full.ref.statistics().queue == 1
    finally:
        full.gate.set()


@kinds
@pytest.mark.parametrize(
    ("overflow", "reason"), [("drop_newest", "dropped_newest"), ("fail", None)]
)
def test_an_ask_that_a_full_mailbox_does_not_take_gets_mailbox_full(
    kind: Any, overflow: str, reason: str | None, system: ActorSystem, letters: list[DeadLetter]
) -> None:
    full = Full(system, kind, overflow)
    error = full.ref.ask(7).exception(timeout=30)
    assert type(error) is MailboxFull
    assert full.ref.path in str(error)
    assert letters == ([DeadLetter(7, full.ref, None, reason)] if reason else [])
    assert full.ref.is_alive
    assert full.ref.statistics().dropped == 1
    full.gate.set()


@kinds
def test_a_send_to_a_stopped_actor_of_a_stopped_system_has_its_reason(kind: Any) -> None:
    found: list[DeadLetter] = []
    with ActorSystem() as system:
        system.dead_letters.subscribe(found.append)
        full = Full(system, kind, "block")
        full.gate.set()
    found.clear()
    full.ref.tell(1)
    full.ref._tell_past_capacity(2)
    # The native actor has failed before: it overrides no receive().
    reason = "stopped" if kind is HeldNative else "system stopped"
    assert [(letter.message, letter.reason) for letter in found] == [(1, reason), (2, reason)]
