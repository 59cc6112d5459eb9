"""`tell` and `tell_many`: order, completeness, senders."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from callboard import Actor, ActorRef, ActorSystem, DeadLetter
from callboard.testing import ManualSystem
from tests.waiting import in_threads


class Recorder(Actor[Any]):
    """Keeps what it is told, and answers any ask with all of it."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def receive(self, message: Any) -> list[Any]:
        if message != "report":
            self.seen.append(message)
        return self.seen


class Forwarder(Actor[Any]):
    def __init__(self, target: ActorRef[Any]) -> None:
        self.target = target

    def receive(self, message: Any) -> None:
        self.target.tell(message)


class SenderRecorder(Actor[Any]):
    """Answers with the sender of the message, and keeps those of earlier ones."""

    def __init__(self) -> None:
        self.senders: list[ActorRef[Any] | None] = []

    def receive(self, message: Any) -> list[ActorRef[Any] | None]:
        self.senders.append(self.sender)
        return self.senders


def report(ref: ActorRef[Any]) -> list[Any]:
    answer: list[Any] = ref.ask("report").result(timeout=30)
    return answer


def test_an_actors_messages_to_another_arrive_in_order(system: ActorSystem) -> None:
    recorder = system.spawn(Recorder)
    forwarder = system.spawn(Forwarder, recorder)
    for number in range(1_000):
        forwarder.tell(number)
    system.drain()
    assert report(recorder) == list(range(1_000))


def test_messages_of_many_threads_all_arrive_each_threads_in_order(system: ActorSystem) -> None:
    recorder = system.spawn(Recorder)
    start = threading.Barrier(4)

    def send(thread: int) -> None:
        start.wait()
        for number in range(500):
            recorder.tell((thread, number))

    in_threads(send, range(4))
    seen = report(recorder)
    assert len(seen) == 2_000
    for index in range(4):
        assert [number for thread, number in seen if thread == index] == list(range(500))


def test_tell_returns_before_the_message_is_handled(system: ActorSystem) -> None:
    gate = threading.Event()
    handled = threading.Event()

    class Waiter(Actor[Any]):
        def receive(self, message: Any) -> None:
            assert gate.wait(30)
            handled.set()

    ref = system.spawn(Waiter)
    ref.tell("go")
    assert not handled.is_set()
    gate.set()
    assert handled.wait(30)


def test_the_message_itself_arrives_and_not_a_copy(system: ActorSystem) -> None:
    message = object()
    recorder = system.spawn(Recorder)
    recorder.tell(message)
    assert report(recorder)[0] is message


@pytest.mark.parametrize("message", [None, False, 0, "", (), NotImplemented, StopIteration()])
def test_any_object_can_be_a_message(system: ActorSystem, message: object) -> None:
    recorder = system.spawn(Recorder)
    recorder.tell(message)
    assert report(recorder) == [message]


def test_tell_many_keeps_the_order_of_its_iterable_and_of_other_tells(system: ActorSystem) -> None:
    recorder = system.spawn(Recorder)
    recorder.tell("first")
    recorder.tell_many(iter(range(1_000)))
    recorder.tell("last")
    assert report(recorder) == ["first", *range(1_000), "last"]


@pytest.mark.parametrize("given", [1, 255, 256, 257, 600])
def test_a_failing_iterable_has_sent_what_it_gave(system: ActorSystem, given: int) -> None:
    def numbers() -> Iterator[int]:
        yield from range(given)
        raise LookupError("the source broke")

    recorder = system.spawn(Recorder)
    with pytest.raises(LookupError, match="the source broke"):
        recorder.tell_many(numbers())
    assert report(recorder) == list(range(given))


def test_an_iterable_may_tell_the_same_actor_while_it_is_read(system: ActorSystem) -> None:
    recorder = system.spawn(Recorder)

    def numbers() -> Iterator[int]:
        for number in range(600):
            if number == 300:
                recorder.tell("between")
            yield number

    recorder.tell_many(numbers())
    seen = report(recorder)
    assert seen.count("between") == 1
    assert [number for number in seen if number != "between"] == list(range(600))


def test_tell_many_of_what_is_not_iterable_names_it(system: ActorSystem) -> None:
    recorder = system.spawn(Recorder)
    with pytest.raises(TypeError, match=r"tell_many\(\) expects an iterable of messages, got 7"):
        recorder.tell_many(7)  # type: ignore[arg-type]


def test_a_message_from_outside_has_no_sender(system: ActorSystem) -> None:
    ref = system.spawn(SenderRecorder)
    ref.tell("hello")
    ref.tell_many(["hello", "hello"])
    assert ref.ask("who").result(timeout=30) == [None] * 4


def test_a_message_from_an_actor_has_that_actors_ref_as_sender(system: ActorSystem) -> None:
    target = system.spawn(SenderRecorder)

    class Teller(Actor[Any]):
        def __init__(self) -> None:
            target.tell("from __init__")

        def on_start(self) -> None:
            target.tell("from on_start")

        def receive(self, message: Any) -> Any:
            target.tell("from receive")
            target.tell_many(["from", "receive"])
            return target.ask("who")

    teller = system.spawn(Teller)
    senders = teller.ask("go").result(timeout=30)
    assert senders == [teller] * 6


def test_an_actor_may_tell_itself(system: ActorSystem) -> None:
    class Countdown(Actor[int]):
        def receive(self, message: int) -> None:
            if message:
                self.ref.tell(message - 1)
            else:
                done.set()

    done = threading.Event()
    system.spawn(Countdown).tell(1_000)
    assert done.wait(30)


def test_the_sender_of_a_tell_many_dead_letters_what_is_left_when_the_actor_has_stopped() -> None:
    def numbers() -> Iterator[int]:
        yield from range(300)
        ref.stop()
        system.run_until_idle()
        yield from range(300, 2_000)

    with ManualSystem() as system:
        ref = system.spawn(Recorder)
        letters: list[DeadLetter] = []
        system.dead_letters.subscribe(letters.append)
        ref.tell_many(numbers())
        waiting = sorted(set(range(2_000)) - {letter.message for letter in letters})
        assert waiting == list(range(256, 512))  # sent together, before it was seen
        system.run_until_idle()
        assert len(letters) == 2_000


def test_a_stopped_actor_whose_letters_are_many_lets_others_run(manual: ManualSystem) -> None:
    ref = manual.spawn(Recorder)
    ref.stop()
    ref.tell_many(range(100_000))
    assert manual.step()
    assert 0 < manual.dead_letters.count < 100_000
