"""A prioritised mailbox: the least key first, and of equal keys the earliest."""

import threading
from typing import Any

import pytest

from callboard import Actor, ActorSystem, ConfigError, PriorityMailbox


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


def test_an_ask_overtakes_by_its_key_too(system: ActorSystem) -> None:
    gate = threading.Event()
    ref = system.spawn(Gated, gate, mailbox=PriorityMailbox(lambda message: message))
    ref.tell_many([5, 6, 7])
    asked = ref.ask(1)
    gate.set()
    assert asked.result(timeout=30) == [1]


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
        ({"key": 7}, "a PriorityMailbox wants a function as key, not 7"),
        ({"key": abs, "capacity": 0}, "a mailbox's capacity is a whole number of 1 or more, not 0"),
        ({"key": abs, "overflow": "drop_oldest"}, "cannot drop_oldest"),
    ],
)
def test_a_wrong_priority_mailbox_is_refused(options: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        PriorityMailbox(**options)
