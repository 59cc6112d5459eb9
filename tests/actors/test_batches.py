"""`receive_many`: waiting messages are handed over as one list."""

import threading
from typing import Any

import pytest

from callboard import (
    Actor,
    ActorStopped,
    ActorSystem,
    BoundedMailbox,
    DeadLetter,
    PriorityMailbox,
    SpawnError,
    Supervision,
)
from callboard.supervision import Directive


class Batcher(Actor[Any]):
    """Keeps the batches it is handed; the first waits until the gate opens."""

    def __init__(self, gate: threading.Event | None = None) -> None:
        self.gate = gate
        self.batches: list[Any] = []

    def receive_many(self, messages: list[Any]) -> None:
        if self.gate is not None:
            assert self.gate.wait(30)
        self.batches.append(messages)

    def receive(self, message: Any) -> Any:
        self.batches.append(("asked", message))
        return self.batches


def test_waiting_messages_come_as_one_list_in_order(system: ActorSystem) -> None:
    gate = threading.Event()
    ref = system.spawn(Batcher, gate)
    ref.tell_many(range(20))
    gate.set()
    batches = ref.ask("report").result(timeout=30)[:-1]
    assert [message for batch in batches for message in batch] == list(range(20))


def test_a_batch_is_at_most_the_quantum() -> None:
    gate = threading.Event()
    with ActorSystem(quantum=8) as system:
        ref = system.spawn(Batcher, gate)
        ref.tell_many(range(100))
        gate.set()
        batches = ref.ask("report").result(timeout=30)[:-1]
    assert [message for batch in batches for message in batch] == list(range(100))
    sizes = [len(batch) for batch in batches]
    assert max(sizes) == 8, "what waited while the gate was shut fills batches"


def test_asks_go_to_receive_in_their_turn(system: ActorSystem) -> None:
    gate = threading.Event()
    ref = system.spawn(Batcher, gate)
    ref.tell("a")
    ref.tell_many(["b", "c"])
    ref.ask("d")
    ref.tell("e")
    gate.set()
    flat: list[Any] = []
    for batch in ref.ask("report").result(timeout=30):
        flat.extend(batch if isinstance(batch, list) else [batch])
    assert flat == ["a", "b", "c", ("asked", "d"), "e", ("asked", "report")]


def test_a_batch_has_no_sender(system: ActorSystem) -> None:
    class Senders(Actor[Any]):
        def __init__(self) -> None:
            self.senders: list[Any] = []

        def receive_many(self, messages: list[Any]) -> None:
            self.senders.append(self.sender)

        def receive(self, message: Any) -> list[Any]:
            return self.senders

    class Teller(Actor[Any]):
        def receive(self, message: Any) -> Any:
            senders.tell(message)
            return senders.ask("report")

    senders = system.spawn(Senders)
    assert system.spawn(Teller).ask("x").result(timeout=30) == [None]


def test_the_list_is_the_actors_own(system: ActorSystem) -> None:
    class Greedy(Actor[Any]):
        def receive_many(self, messages: list[Any]) -> None:
            kept.append(messages)
            messages.append("mine")

        def receive(self, message: Any) -> None:
            pass

    kept: list[list[Any]] = []
    ref = system.spawn(Greedy)
    ref.tell_many(range(500))
    ref.ask("flush").result(timeout=30)
    assert [m for batch in kept for m in batch if m != "mine"] == list(range(500))


class Brittle(Actor[Any]):
    """Fails on a batch with "bad" in it."""

    def __init__(self, gate: threading.Event, failures: list[Any]) -> None:
        self.gate, self.failures = gate, failures
        self.seen: list[Any] = []

    def receive_many(self, messages: list[Any]) -> None:
        assert self.gate.wait(30)
        if "bad" in messages:
            raise ValueError("a bad batch")
        self.seen.extend(messages)

    def receive(self, message: Any) -> list[Any]:
        return list(self.seen)

    def on_failure(self, error: BaseException, message: Any) -> None:
        self.failures.append((str(error), message))


@pytest.mark.parametrize("directive", ["resume", "restart"])
def test_each_message_of_a_batch_that_fails_is_a_dead_letter_and_the_rest_goes_on(
    system: ActorSystem, directive: Directive
) -> None:
    letters: list[DeadLetter] = []
    system.dead_letters.subscribe(letters.append)
    gate, failures = threading.Event(), list[Any]()
    ref = system.spawn(Brittle, gate, failures, supervision=directive)
    ref.tell_many(["bad", "bad", "bad"])
    asked = ref.ask("behind the batch")
    ref.tell_many(["good", "good"])
    gate.set()
    assert asked.result(timeout=30) == []
    assert ref.ask("report").result(timeout=30) == ["good", "good"]
    system.drain()
    assert [(letter.message, letter.reason) for letter in letters] == [("bad", "failed")] * 3
    assert {str(letter.error) for letter in letters} == {"a bad batch"}
    assert sum(1 for _ in failures) in (1, 2, 3)  # as many as there were batches
    assert set(failures) == {("a bad batch", "bad")}


def test_an_ask_behind_a_batch_that_stops_the_actor_fails(system: ActorSystem) -> None:
    gate = threading.Event()
    ref = system.spawn(Brittle, gate, [])
    ref.tell("bad")
    asked = ref.ask("behind")
    gate.set()
    with pytest.raises(ActorStopped):
        asked.result(timeout=30)
    system.drain()
    assert system.dead_letters.reasons == {"failed": 1, "stopped": 1}


def test_only_messages_left_in_a_failed_batch_are_dead(system: ActorSystem) -> None:
    class Consumer(Actor[Any]):
        def receive_many(self, messages: list[Any]) -> None:
            assert gate.wait(30)
            while messages:
                if messages.pop(0) == "bad":
                    raise ValueError("in the middle")

        def receive(self, message: Any) -> str:
            return "alive"

    letters: list[DeadLetter] = []
    system.dead_letters.subscribe(letters.append)
    gate = threading.Event()
    ref = system.spawn(Consumer, supervision="resume")
    ref.tell("good")
    ref.tell("bad")
    gate.set()
    assert ref.ask("are you").result(timeout=30) == "alive"
    assert letters == [], "the list was empty when it failed"
    assert system.dead_letters.failure_count == 1


def test_a_batcher_that_stops_itself_handles_the_batch_and_no_more(system: ActorSystem) -> None:
    class Once(Actor[Any]):
        def receive_many(self, messages: list[Any]) -> None:
            seen.extend(messages)
            self.stop()

        def receive(self, message: Any) -> None:
            pass

    seen: list[Any] = []
    ref = system.spawn(Once)
    ref.tell_many(range(1_000))
    system.drain()
    assert not ref.is_alive
    assert seen == list(range(len(seen)))
    assert len(seen) + system.dead_letters.count == 1_000


def test_a_batcher_that_stops_itself_answers_no_ask_behind_the_batch(system: ActorSystem) -> None:
    class Once(Actor[Any]):
        def receive_many(self, messages: list[Any]) -> None:
            assert gate.wait(30)
            self.stop()

        def receive(self, message: Any) -> str:
            return "too late"

    gate = threading.Event()
    ref = system.spawn(Once)
    ref.tell("batch")
    asked = ref.ask("behind")
    gate.set()
    with pytest.raises(ActorStopped):
        asked.result(timeout=30)


@pytest.mark.parametrize(
    "mailbox",
    [BoundedMailbox(100), BoundedMailbox(100, "drop_oldest"), PriorityMailbox(lambda m: 0)],
    ids=["bounded", "drop_oldest", "priority"],
)
def test_every_kind_of_mailbox_gives_batches(system: ActorSystem, mailbox: Any) -> None:
    gate = threading.Event()
    ref = system.spawn(Batcher, gate, mailbox=mailbox)
    ref.tell_many(range(50))
    gate.set()
    batches = ref.ask("report").result(timeout=30)[:-1]
    assert [message for batch in batches for message in batch] == list(range(50))


@pytest.mark.parametrize("directive", ["resume", "restart", "stop"])
def test_a_batch_survives_a_failing_key(system: ActorSystem, directive: Directive) -> None:
    class Sorted(Actor[Any]):
        def __init__(self) -> None:
            assert gate.wait(30)

        def receive_many(self, messages: list[Any]) -> None:
            received.extend(messages)

        def receive(self, message: Any) -> str:
            return "in its turn"

    letters: list[DeadLetter] = []
    system.dead_letters.subscribe(letters.append)
    gate = threading.Event()
    received: list[Any] = []
    mailbox = PriorityMailbox(lambda message: 10 if message == "asked" else 1 // message)
    ref = system.spawn(Sorted, mailbox=mailbox, supervision=directive)
    ref.tell_many([1, 2, 0, 3])
    asked = ref.ask("asked")
    gate.set()
    if directive == "stop":
        with pytest.raises(ActorStopped):
            asked.result(timeout=30)
    else:
        assert asked.result(timeout=30) == "in its turn"
    system.drain()
    failed = [letter.message for letter in letters if letter.reason == "failed"]
    stopped = [letter.message for letter in letters if letter.reason == "stopped"]
    assert failed == [0]
    assert isinstance(letters[0].error, ZeroDivisionError)
    if directive == "stop":
        assert sorted([*received, *stopped], key=str) == [1, 2, 3, "asked"]
    else:
        assert sorted(received) == [1, 2, 3]
        assert stopped == []


def test_become_hands_messages_over_one_by_one_and_unbecome_in_batches(system: ActorSystem) -> None:
    class Changing(Actor[Any]):
        def __init__(self) -> None:
            self.seen: list[Any] = []

        def receive_many(self, messages: list[Any]) -> None:
            self.seen.append(list(messages))

        def receive(self, message: Any) -> list[Any]:
            if message == "one by one":
                self.become(self.receive_one)
            return self.seen

        def receive_one(self, message: Any) -> None:
            self.seen.append(message)
            if message == "last":
                self.unbecome()

    ref = system.spawn(Changing)
    ref.ask("one by one").result(timeout=30)
    ref.tell_many([1, 2, "last"])
    system.drain()
    ref.tell("batch")
    assert ref.ask("report").result(timeout=30) == [1, 2, "last", ["batch"]]


def test_a_class_with_receive_many_needs_receive_too(system: ActorSystem) -> None:
    class Half(Actor[Any]):
        def receive_many(self, messages: list[Any]) -> None:
            pass

    with pytest.raises(SpawnError, match="Half has no method `receive"):
        system.spawn(Half)


def test_receive_many_may_not_be_a_coroutine(system: ActorSystem) -> None:
    class Async(Actor[Any]):
        async def receive_many(self, messages: list[Any]) -> None:
            pass

        def receive(self, message: Any) -> None:
            pass

    with pytest.raises(SpawnError, match="receive_many is `async`, but only `receive`, "):
        system.spawn(Async)


def test_asks_of_a_batcher_may_wait_in_the_middle(system: ActorSystem) -> None:
    class Waits(Actor[Any]):
        def __init__(self) -> None:
            self.seen: list[Any] = []

        def receive_many(self, messages: list[Any]) -> None:
            self.seen.extend(messages)

        async def receive(self, message: Any) -> list[Any]:
            await self.sleep(0.001)
            return list(self.seen)

    ref = system.spawn(Waits, supervision=Supervision("resume"))
    ref.tell_many([1, 2])
    first = ref.ask("report")
    ref.tell_many([3, 4])
    second = ref.ask("report")
    assert first.result(timeout=30) == [1, 2]
    assert second.result(timeout=30) == [1, 2, 3, 4]
