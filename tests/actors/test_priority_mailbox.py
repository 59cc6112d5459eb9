"""A prioritised mailbox: the smallest key first, and the earliest of equal keys."""

import math
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from math import nan
from typing import Any

import numpy
import pytest

from callboard import (
    Actor,
    ActorRef,
    ActorSystem,
    ConfigError,
    DeadLetter,
    Future,
    PriorityMailbox,
    Terminated,
)
from callboard.testing import ManualSystem


class Gated(Actor[Any]):
    def __init__(self, gate: threading.Event) -> None:
        self.gate = gate
        self.seen: list[Any] = []

    def on_start(self) -> None:
        assert self.gate.wait(60)

    def receive(self, message: Any) -> Any:
        self.seen.append(message)
        return list(self.seen)


def test_the_least_key_comes_first_and_equal_keys_keep_their_order(system: ActorSystem) -> None:
    gate = threading.Event()
    ref = system.spawn(Gated, gate, mailbox=PriorityMailbox(lambda message: message[0]))
    ref.tell_many([(3, "a"), (1, "b"), (2, "c"), (1, "d"), (3, "e"), (2, "f")])
    last = ref.ask((9, "ask"))
    gate.set()
    assert last.result(timeout=30) == [
        (1, "b"), (1, "d"), (2, "c"), (2, "f"), (3, "a"), (3, "e"), (9, "ask"),
    ]  # fmt: skip


def test_messages_themselves_need_not_be_comparable(system: ActorSystem) -> None:
    gate = threading.Event()
    ref = system.spawn(Gated, gate, mailbox=PriorityMailbox(lambda message: 0))
    messages = [object() for _ in range(20)]
    ref.tell_many(messages)
    gate.set()
    assert ref.ask("end").result(timeout=30) == [*messages, "end"]


@pytest.mark.parametrize("key", [lambda message: 1 // message, lambda message: message])
def test_a_message_whose_key_fails_has_failed_and_no_other(system: ActorSystem, key: Any) -> None:
    gate = threading.Event()
    ref = system.spawn(Gated, gate, mailbox=PriorityMailbox(key), supervision="resume")
    bad: Any = "not a number"
    ref.tell_many([4, 3, bad, 2])
    gate.set()
    system.drain()
    assert system.dead_letters.reasons == {"failed": 1}
    assert len(ref.ask(9).result(timeout=30)) == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"key": 7}, "a PriorityMailbox expects a function as key, got 7"),
        ({"key": abs, "overflow": "drop_oldest"}, "cannot drop_oldest"),
    ],
)
def test_a_wrong_priority_mailbox_is_refused(options: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        PriorityMailbox(**options)


def _handled(keys: list[Any], **options: Any) -> list[Any]:
    """Return messages, which are their own keys, in the order in which they are handled."""
    with ManualSystem() as system:
        seen: list[Any] = []

        class Noting(Actor[Any]):
            def receive(self, message: Any) -> None:
                seen.append(message)

        ref = system.spawn(Noting, mailbox=PriorityMailbox(lambda key: key), **options)
        ref.tell_many(keys)
        system.run_until_idle()
        assert len(seen) + system.dead_letters.count == len(keys)
        return seen


def named(value: object) -> str:
    """Name a value as every process does, without its address."""
    return repr(value).partition(" at 0x")[0]


@pytest.mark.parametrize(
    ("lost", "wrap"),
    [
        (nan, float),
        (numpy.float64("nan"), numpy.float64),
        (numpy.float32("nan"), numpy.float32),
        (numpy.datetime64("NaT"), lambda number: numpy.datetime64(number, "s")),
        (Decimal("nan"), Decimal),
        (Decimal("snan"), Decimal),
        ((1, nan), lambda number: (1, float(number))),
        ((nan, 1), lambda number: (float(number), 1)),
        ((1, [2, (nan,)]), lambda number: (1, [2, (number,)])),
    ],
    ids=named,
)
def test_a_nan_key_comes_last_and_others_keep_order(lost: Any, wrap: Callable[[int], Any]) -> None:
    keys = [wrap(number) for number in range(1, 8)] + [lost] * 3
    for seed in range(20):
        random.Random(seed).shuffle(keys)
        seen = _handled(keys)
        assert seen[:7] == [wrap(number) for number in range(1, 8)]
        assert len(seen) == 10


def test_zero_of_either_sign_is_one_key() -> None:
    assert [math.copysign(1, key) for key in _handled([0.0, -0.0, 0, -0.0, -1.0])] == [
        -1.0, 1.0, -1.0, 1.0, -1.0,
    ]  # fmt: skip


class Quiet(Actor[Any]):
    def receive(self, message: Any) -> None:
        pass


@dataclass(order=True, frozen=True)
class Urgency:
    value: float


@pytest.mark.parametrize("bad", [None, {}, 1j, "text", object(), numpy.array([1, 2])], ids=named)
def test_a_key_without_an_order_is_an_error_of_its_own_message(bad: Any) -> None:
    for position in range(4):
        keys: list[Any] = [3, 1, 2]
        keys.insert(position, bad)
        seen = _handled(keys, supervision="resume")
        if isinstance(bad, str) and position == 0:  # each is a key, and this one was first
            assert seen == ["text"]
        else:
            assert seen == [1, 2, 3]


@pytest.mark.parametrize(
    "keys", [[{1}, {2}, {3}], [Urgency(1), Urgency(nan), Urgency(0)]], ids=["sets", "fields"]
)
def test_keys_of_which_neither_is_less_are_refused_and_not_put_anywhere(keys: list[Any]) -> None:
    letters: list[DeadLetter] = []
    with ManualSystem() as system:
        system.dead_letters.subscribe(letters.append)
        mailbox = PriorityMailbox(lambda key: key)
        ref = system.spawn(Quiet, mailbox=mailbox, supervision="resume")
        ref.tell_many(keys)
        system.run_until_idle()
    assert letters
    assert "neither is less, and they are not equal" in str(letters[0].error)


class Job:
    def __init__(self, priority: int, awaited: Future[None] | None = None) -> None:
        self.priority = priority
        self.awaited = awaited


class Parent(Actor[Any]):
    """Watches another and sets a timer, and knows nothing of its mailbox."""

    def __init__(self, watched: ActorRef[Any], seen: list[Any]) -> None:
        self.seen = seen
        self.watch(watched)
        self.after(1, "timer")

    async def receive(self, message: Any) -> None:
        self.seen.append(getattr(message, "priority", type(message)))
        if isinstance(message, Job) and message.awaited is not None:
            await message.awaited


@pytest.mark.parametrize("context", ["own", "sender"])
@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (lambda message: message.priority, [Terminated, str, DeadLetter, 1, 2]),  # it raises
        (lambda message: getattr(message, "priority", None), [Terminated, str, DeadLetter, 1, 2]),
        (lambda message: getattr(message, "priority", "no"), [Terminated, str, DeadLetter, 1, 2]),
        (lambda message: getattr(message, "priority", 1.5), [1, Terminated, str, DeadLetter, 2]),
        (lambda message: getattr(message, "priority", nan), [1, 2, Terminated, str, DeadLetter]),
    ],
    ids=["raises", "none", "text", "number", "nan"],
)
def test_messages_of_the_runtime_go_first_or_by_their_key(
    key: Callable[[Any], Any], expected: list[Any], context: Any
) -> None:
    seen: list[Any] = []
    promise: Future[None] = Future()
    with ManualSystem() as system:
        watched = system.spawn(Gated, threading.Event())
        ref = system.spawn(Parent, watched, seen, mailbox=PriorityMailbox(key), context=context)
        ref.tell_many([Job(0, promise), Job(2), Job(1)])
        system.dead_letters.subscribe(ref)
        watched.stop()
        system.run_until_idle()
        system.advance(1)
        watched.tell("late")
        promise.set_result(None)
        system.drain()
        assert seen == [0, *expected]
        assert ref.is_alive
