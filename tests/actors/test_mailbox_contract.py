"""One contract for every kind of mailbox, driven through the public API by random programs.

A machine sends to one actor and lets it handle some of its messages, and does the same to a model
in plain Python. After every step the two agree on what was handled, in which order, on what is a
dead letter, and for which reason, and on the answers.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from callboard import (
    Actor,
    ActorStopped,
    BoundedMailbox,
    DeadLetter,
    Future,
    MailboxFull,
    PriorityMailbox,
    Supervision,
)
from callboard.testing import ManualSystem

pytestmark = pytest.mark.usefixtures("quiet")

CAPACITY = 3

MAILBOXES = {
    "unbounded": None,
    **{
        f"bounded, {overflow}": BoundedMailbox(CAPACITY, overflow)
        for overflow in ("block", "help", "drop_newest", "drop_oldest", "fail", "throttle")
    },
    "prioritised": PriorityMailbox(lambda message: message.key),
    **{
        f"prioritised and bounded, {overflow}": PriorityMailbox(
            lambda message: message.key, CAPACITY, overflow
        )
        for overflow in ("block", "help", "drop_newest", "fail", "throttle")
    },
}


@dataclass(frozen=True)
class ContractMessage:
    """A message, and what its receiver does with it."""

    number: int  # unique
    key: int  # its priority, where that matters
    deed: str


class ScriptedFailure(Exception):
    """Raised by a receiver that is told to fail."""


class Receiver(Actor[ContractMessage]):
    """Does what each message says, and notes it. Each is stashed at its first handling only."""

    def __init__(self, log: list[int], stashed: set[int]) -> None:
        self.log = log
        self.stashed = stashed

    def receive(self, message: ContractMessage) -> int:
        self.log.append(message.number)
        match message.deed:
            case "fail":
                raise ScriptedFailure(message.number)
            case "stash" | "stash and fail" if message.number not in self.stashed:
                self.stashed.add(message.number)
                self.stash()
                if message.deed == "stash and fail":
                    raise ScriptedFailure(message.number)
            case "unstash":
                self.unstash_all()
            case "stop":
                self.stop()
        return message.number


class Model:
    """What the receiver and its mailbox ought to do."""

    def __init__(self, mailbox: BoundedMailbox | PriorityMailbox | None, directive: str) -> None:
        self.capacity = mailbox.capacity if mailbox is not None else None
        self.overflow = mailbox.overflow if mailbox is not None else "block"
        self.prioritised = isinstance(mailbox, PriorityMailbox)
        self.directive = directive
        self.waiting: list[ContractMessage] = []
        self.stash: list[ContractMessage] = []
        self.unstashed: list[ContractMessage] = []  # to be handled before the mailbox
        self.stashed: set[int] = set()
        self.closed = False
        self.log: list[int] = []
        self.dead: list[tuple[int, str]] = []
        self.answered: dict[int, object] = {}  # what each ask would get

    def is_full(self) -> bool:
        return self.capacity is not None and len(self.waiting) >= self.capacity

    def tell(self, message: ContractMessage) -> bool:
        """Send; False if that is refused."""
        if not self.closed and self.is_full():
            match self.overflow:
                case "block" | "help" | "throttle":
                    while not self.closed and self.is_full():
                        self.handle_one()
                case "drop_newest":
                    self.die(message, "dropped_newest", MailboxFull)
                    return True
                case "drop_oldest":
                    self.die(self.waiting.pop(0), "dropped_oldest", MailboxFull)
                case "fail":
                    self.answered[message.number] = MailboxFull
                    return False
        if self.closed:
            self.die(message, "stopped", ActorStopped)
        else:
            self.waiting.append(message)
        return True

    def has_work(self) -> bool:
        return bool(self.unstashed or self.waiting)

    def handle_one(self) -> None:
        message = self.take()
        self.log.append(message.number)
        stashes = message.deed.startswith("stash") and message.number not in self.stashed
        fails = message.deed == "fail" or (stashes and message.deed == "stash and fail")
        if stashes:
            self.stashed.add(message.number)
            self.stash.append(message)
        elif fails:
            self.die(message, "failed", ScriptedFailure)
        else:
            self.answered[message.number] = message.number
        if message.deed == "unstash":
            self.replay_stash()
        if fails and self.directive == "restart":
            self.replay_stash()
        elif message.deed == "stop" or (fails and self.directive == "stop"):
            self.close()

    def take(self) -> ContractMessage:
        if self.unstashed:
            return self.unstashed.pop(0)
        first = self.waiting[0]
        if self.prioritised:
            first = min(self.waiting, key=lambda other: other.key)
        self.waiting.remove(first)
        return first

    def replay_stash(self) -> None:
        self.unstashed = self.stash + self.unstashed
        self.stash = []

    def close(self) -> None:
        self.closed = True
        for message in [*self.unstashed, *self.stash, *self.waiting]:
            self.die(message, "stopped", ActorStopped)
        self.unstashed, self.stash, self.waiting = [], [], []

    def die(self, message: ContractMessage, reason: str, error: type[Exception]) -> None:
        self.dead.append((message.number, reason))
        self.answered[message.number] = error


class MailboxMachine(RuleBasedStateMachine):
    """Sends to an actor with a mailbox of one kind; subclasses say which."""

    mailbox: BoundedMailbox | PriorityMailbox | None

    @initialize(directive=st.sampled_from(["resume", "restart", "stop"]))
    def spawn(self, directive: Any) -> None:
        self.numbers = itertools.count()
        self.log: list[int] = []
        self.dead: list[DeadLetter] = []
        self.asks: dict[int, Future[Any]] = {}
        self.model = Model(self.mailbox, directive)
        self.system = ManualSystem()
        self.system.dead_letters.subscribe(self.dead.append)
        self.ref = self.system.spawn(
            Receiver,
            self.log,
            set(),
            name="receiver",
            mailbox=self.mailbox,
            supervision=Supervision(directive, limit=None),
        )
        self.system.run_until_idle()

    messages = st.tuples(
        st.integers(0, 3),
        st.sampled_from(
            ["note"] * 6 + ["fail", "stash", "stash", "stash and fail", "unstash", "unstash"]
        ),
    )

    def message(self, drawn: tuple[int, str]) -> ContractMessage:
        return ContractMessage(next(self.numbers), *drawn)

    @rule(drawn=messages)
    def tell(self, drawn: tuple[int, str]) -> None:
        message = self.message(drawn)
        if self.model.tell(message):
            self.ref.tell(message)
        else:
            with pytest.raises(MailboxFull, match=f"/receiver is full: {CAPACITY} messages"):
                self.ref.tell(message)

    @rule(drawn=st.lists(messages, max_size=8))
    def tell_many(self, drawn: list[tuple[int, str]]) -> None:
        messages = [self.message(each) for each in drawn]
        if all(self.model.tell(message) for message in messages):
            self.ref.tell_many(messages)
        else:  # what comes after the one that is refused is not sent
            with pytest.raises(MailboxFull):
                self.ref.tell_many(messages)

    @rule(drawn=messages)
    def ask(self, drawn: tuple[int, str]) -> None:
        message = self.message(drawn)
        self.model.tell(message)
        self.asks[message.number] = self.ref.ask(message)

    @precondition(lambda self: self.model.has_work())
    @rule(count=st.integers(1, 4))
    def handle(self, count: int) -> None:
        for _ in range(count):
            if self.model.has_work():
                self.model.handle_one()
        assert self.system.run_until(lambda: len(self.log) >= len(self.model.log))

    @rule()
    def handle_all(self) -> None:
        while self.model.has_work():
            self.model.handle_one()
        self.system.run_until_idle()

    @rule(drawn=st.integers(0, 3))
    def tell_to_stop(self, drawn: int) -> None:
        self.tell((drawn, "stop"))

    @rule()
    def stop(self) -> None:
        if not self.model.closed:
            self.model.close()
        self.ref.stop()
        self.system.run_until_idle()

    @invariant()
    def the_mailbox_and_its_model_agree(self) -> None:
        if self.model.closed:
            self.system.run_until_idle()  # it is the last dispatch that makes the dead letters
        assert self.log == self.model.log
        assert self.ref.is_alive != self.model.closed
        assert Counter((dead.message.number, dead.reason) for dead in self.dead) == Counter(
            self.model.dead
        )
        assert self.system.dead_letters.count == len(self.model.dead)
        if self.model.capacity is not None:
            assert self.ref.statistics().queue == len(self.model.waiting)
        for number, future in self.asks.items():
            expected = self.model.answered.get(number)
            assert future.done() == (number in self.model.answered)
            if isinstance(expected, type):
                assert isinstance(future.exception(), expected)
            elif future.done():
                assert future.result() == expected

    def teardown(self) -> None:
        if not hasattr(self, "system"):
            return  # the machine was never started
        self.model.close()
        self.system.stop()
        self.dead = [
            DeadLetter(d.message, d.recipient, d.sender, d.reason.replace("system ", ""), d.error)
            for d in self.dead
        ]
        self.the_mailbox_and_its_model_agree()


for kind, mailbox in MAILBOXES.items():
    name = "".join(part.title() for part in kind.replace(",", "").replace("_", " ").split())
    machine = type(name, (MailboxMachine,), {"mailbox": mailbox})
    globals()[f"Test{name}"] = machine.TestCase  # type: ignore[attr-defined]
