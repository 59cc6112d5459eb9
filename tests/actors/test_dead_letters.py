"""Dead letters: no message is lost without a trace."""

import gc
import threading
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from callboard import (
    Actor,
    ActorStopped,
    ActorSystem,
    BoundedMailbox,
    CallboardError,
    DeadLetter,
    Future,
)
from callboard.supervision import Directive


class Sink(Actor[Any]):
    def __init__(self, seen: list[Any] | None = None) -> None:
        self.seen = seen if seen is not None else []

    def receive(self, message: Any) -> Any:
        if message == "fail":
            raise ValueError("as told")
        self.seen.append(message)


@pytest.fixture
def letters(system: ActorSystem) -> list[DeadLetter]:
    kept: list[DeadLetter] = []
    system.dead_letters.subscribe(kept.append)
    return kept


def test_a_tell_to_a_stopped_actor_is_dead(system: ActorSystem, letters: list[DeadLetter]) -> None:
    ref = system.spawn(Sink)
    ref.stop()
    system.drain()
    ref.tell("too late")
    ref.tell_many(["and", "more"])
    system.drain()
    assert letters == [
        DeadLetter(message, ref, None, "stopped") for message in ["too late", "and", "more"]
    ]
    assert system.dead_letters.count == 3


def test_waiting_messages_are_dead_in_order(system: ActorSystem, letters: list[DeadLetter]) -> None:
    gate = threading.Event()

    class Held(Sink):
        def on_start(self) -> None:
            assert gate.wait(30)

    ref = system.spawn(Held)
    ref.tell_many(range(10))
    ref.stop()
    gate.set()
    system.drain()
    assert letters == [DeadLetter(number, ref, None, "stopped") for number in range(10)]


@pytest.mark.parametrize("directive", ["stop", "resume", "restart"])
@pytest.mark.parametrize("message", ["fail", None, ()])
def test_a_message_whose_handling_failed_is_a_dead_letter_with_the_error(
    system: ActorSystem, letters: list[DeadLetter], directive: Directive, message: Any
) -> None:
    class Fails(Actor[Any]):
        def receive(self, message: Any) -> None:
            raise ValueError("as ever")

    ref = system.spawn(Fails, supervision=directive)
    ref.tell(message)
    system.drain()
    (letter,) = letters
    assert (letter.message, letter.recipient, letter.reason) == (message, ref, "failed")
    assert str(letter.error) == "as ever"
    assert letter.error is not None
    assert letter.error.__traceback__ is not None
    assert system.dead_letters.reasons == {"failed": 1}


@pytest.mark.parametrize("message", ["fail", "stop"])
def test_the_asker_is_told_after_the_letter_is_posted(system: ActorSystem, message: str) -> None:
    begin = threading.Event()
    asks: list[Future[Any]] = []
    told: list[bool] = []

    class Held(Sink):
        def receive(self, message: Any) -> None:
            assert begin.wait(30)
            if message == "stop":
                self.stop()
            super().receive(message)

    ref = system.spawn(Held)
    system.dead_letters.subscribe(lambda letter: told.append(asks[0].done()))
    ref.tell("stop" if message == "stop" else "go on")
    asks.append(ref.ask(message))
    begin.set()
    with pytest.raises(ActorStopped if message == "stop" else ValueError):
        asks[0].result(timeout=30)
    assert told == [False]


def test_a_dead_letter_names_its_sender(system: ActorSystem, letters: list[DeadLetter]) -> None:
    class Teller(Actor[Any]):
        def receive(self, message: Any) -> None:
            gone.tell(message)
            gone.ask(message)
            failing.tell("fail")

    gone = system.spawn(Sink)
    gone.stop()
    system.drain()
    failing = system.spawn(Sink)
    teller = system.spawn(Teller)
    teller.tell("x")
    system.drain()
    assert [letter.sender for letter in letters] == [teller] * 3
    assert [letter.reason for letter in letters] == ["stopped", "stopped", "failed"]


def test_letters_can_be_handed_to_an_actor(system: ActorSystem) -> None:
    seen: list[Any] = []
    system.dead_letters.subscribe(system.spawn(Sink, seen))
    ref = system.spawn(Sink)
    ref.tell("fail")
    system.drain()
    (letter,) = seen
    assert isinstance(letter, DeadLetter)
    assert (letter.message, letter.recipient, letter.reason) == ("fail", ref, "failed")


def test_letters_can_be_handed_to_a_recipient_of_ones_own(system: ActorSystem) -> None:
    class Keeping:
        def __init__(self) -> None:
            self.told: list[DeadLetter] = []

        def tell(self, message: DeadLetter) -> None:
            self.told.append(message)

        def tell_many(self, messages: Iterable[DeadLetter]) -> None:
            self.told += messages

        def ask(self, message: DeadLetter, timeout: float | None = None) -> Future[Any]:
            return Future()

    keeping = Keeping()
    system.dead_letters.subscribe(keeping)
    system.spawn(Sink).tell("fail")
    system.drain()
    assert [letter.message for letter in keeping.told] == ["fail"]


def test_a_letter_that_is_dead_itself_is_counted_and_goes_nowhere(system: ActorSystem) -> None:
    subscriber = system.spawn(Sink)
    system.dead_letters.subscribe(subscriber)
    subscriber.stop()
    system.drain()
    ref = system.spawn(Sink)
    ref.stop()
    system.drain()
    ref.tell("x")
    system.drain()
    assert system.dead_letters.reasons == {"stopped": 2}


def test_a_subscriber_that_raises_hurts_nobody(system: ActorSystem) -> None:
    def broken(letter: DeadLetter) -> None:
        raise LookupError("a broken subscriber")

    kept: list[DeadLetter] = []
    system.dead_letters.subscribe(broken)
    system.dead_letters.subscribe(kept.append)
    ref = system.spawn(Sink, supervision="resume")
    ref.tell("fail")
    with pytest.raises(ValueError, match="as told"):
        ref.ask("fail").result(timeout=30)
    ref.stop()
    system.drain()
    ref.tell("late")  # this thread finds the letter dead
    assert [letter.message for letter in kept] == ["fail", "fail", "late"]


def test_a_subscriber_can_leave(system: ActorSystem) -> None:
    kept: list[DeadLetter] = []
    ref = system.spawn(Sink)
    ref.stop()
    system.drain()
    system.dead_letters.subscribe(kept.append)
    ref.tell("seen")
    system.dead_letters.unsubscribe(kept.append)
    ref.tell("unseen")
    assert [letter.message for letter in kept] == ["seen"]
    assert system.dead_letters.count == 2


@pytest.mark.parametrize("what", [None, "nobody"])
def test_a_subscriber_is_a_ref_or_a_function(system: ActorSystem, what: Any) -> None:
    with pytest.raises(TypeError, match=rf"a ref or a function, got {what!r}"):
        system.dead_letters.subscribe(what)


def test_dropped_messages_are_dead_letters(system: ActorSystem, letters: list[DeadLetter]) -> None:
    gate, entered = threading.Event(), threading.Event()

    class Held(Sink):
        def on_start(self) -> None:
            entered.set()
            assert gate.wait(30)

    seen: list[Any] = []
    newest = system.spawn(Held, seen, mailbox=BoundedMailbox(2, "drop_newest"))
    assert entered.wait(30)
    newest.tell_many([1, 2, 3])
    gate.set()
    system.drain()
    gate.clear()
    entered.clear()
    oldest = system.spawn(Held, seen, mailbox=BoundedMailbox(2, "drop_oldest"))
    assert entered.wait(30)
    oldest.tell_many([4, 5, 6])
    gate.set()
    system.drain()
    assert seen == [1, 2, 5, 6]
    assert letters == [
        DeadLetter(3, newest, None, "dropped_newest"),
        DeadLetter(4, oldest, None, "dropped_oldest"),
    ]


def test_messages_left_at_a_systems_stop_are_dead_for_that_reason() -> None:
    gate = threading.Event()

    class Stopping(Sink):
        def receive(self, message: Any) -> None:
            assert gate.wait(30)
            system.stop()  # from here it only asks for it

    kept: list[DeadLetter] = []
    system = ActorSystem()
    system.dead_letters.subscribe(kept.append)
    ref = system.spawn(Stopping)
    ref.tell_many(["in work", "left", "over"])
    gate.set()
    assert system.join(30)
    system.stop(30)
    assert kept == [
        DeadLetter("left", ref, None, "system stopped"),
        DeadLetter("over", ref, None, "system stopped"),
    ]


def test_failures_are_remembered_with_their_actors_paths(system: ActorSystem) -> None:
    ref = system.spawn(Sink, name="sink", supervision="resume")
    for _ in range(150):
        ref.tell("fail")
    system.drain()
    assert system.dead_letters.failure_count == 150
    failures = system.dead_letters.failures
    assert len(failures) == 100, "only the latest, so that they do not pile up"
    assert {(path, str(error)) for path, error in failures} == {("/sink", "as told")}


def test_a_finalizer_may_tell_a_stopped_actor_wherever_it_runs(system: ActorSystem) -> None:
    class Testament:
        """Tells an actor that has stopped, when it is freed: often by the runtime itself."""

        def __del__(self) -> None:
            gone.tell("my will")

    class Fails(Actor[Any]):
        def receive(self, message: Any) -> None:
            testament = Testament()  # lives as long as the error, in its traceback
            raise ValueError(str(type(testament)))

    gone = system.spawn(Sink)
    gone.stop()
    system.drain()
    ref = system.spawn(Fails, supervision="resume")
    for _ in range(300):
        ref.tell("x")
    system.drain(timeout=30)
    gc.collect()
    assert system.dead_letters.reasons["stopped"] >= 150
    assert ref.is_alive


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


def test_a_letter_can_be_printed_whatever_it_holds(system: ActorSystem) -> None:
    letters: list[DeadLetter] = []
    system.dead_letters.subscribe(letters.append)

    class Raises(Actor[Any]):
        def receive(self, message: Any) -> None:
            raise message

    ref = system.spawn(Raises, name="raises")
    ref.tell(Unprintable())
    system.drain()
    (letter,) = letters
    for text in (repr(letter), str(letter), f"{letter}"):
        assert text.startswith("DeadLetter(message=<Unprintable, whose repr() raised RuntimeError>")
        assert text.endswith("error=<Unprintable, whose repr() raised RuntimeError>)")
        assert "/raises" in text


def test_an_error_about_a_value_can_be_printed_whatever_that_is(system: ActorSystem) -> None:
    wrong: Any = Unprintable()
    ref = system.spawn(Sink)
    asked: list[Callable[[], object]] = [
        lambda: system.spawn(wrong),
        lambda: system.spawn(Sink, name=wrong),
        lambda: system.spawn(Sink, mailbox=wrong),
        lambda: system.spawn(Sink, placement=wrong),
        lambda: system.spawn(Sink, supervision=wrong),
        lambda: system.dead_letters.subscribe(wrong),
        lambda: ref.tell_many(wrong),
        lambda: ActorSystem(workers=wrong),
        lambda: ActorSystem(config=wrong),
    ]
    for use in asked:
        with pytest.raises((CallboardError, TypeError), match="whose repr\\(\\) raised"):
            use()
