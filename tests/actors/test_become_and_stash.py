"""Changing the handler, and putting messages aside."""

from collections.abc import Callable
from functools import partialmethod
from typing import Any

import pytest

from callboard import Actor, ActorRef, ActorSystem, CallboardError, Future


class Scripted(Actor[Callable[["Scripted"], Any]]):
    """Does what its messages say, on itself."""

    log: list[Any]

    def __init__(self) -> None:
        self.log = []

    def receive(self, message: Callable[["Scripted"], Any]) -> Any:
        return message(self)


class Door(Actor[str]):
    """Open or closed, and tells which."""

    def receive(self, message: str) -> str:
        if message == "open":
            self.become(self.opened)
        return f"closed: {message}"

    def opened(self, message: str) -> str:
        if message == "close":
            self.unbecome()
        return f"open: {message}"


def ask_each(ref: ActorRef[Any], *messages: Any) -> list[Any]:
    return [future.result(timeout=30) for future in [ref.ask(message) for message in messages]]


def test_become_takes_effect_at_the_next_message(system: ActorSystem) -> None:
    door = system.spawn(Door)
    assert ask_each(door, "knock", "open", "enter", "close", "knock") == [
        "closed: knock",
        "closed: open",
        "open: enter",
        "open: close",
        "closed: knock",
    ]


def test_handlers_form_a_stack(system: ActorSystem) -> None:
    class Nested(Actor[str]):
        def receive(self, message: str) -> str:
            self.become(lambda message: self.inner("first", message))
            return "receive"

        def inner(self, name: str, message: str) -> str:
            if message == "deeper":
                self.become(lambda message: self.inner("second", message))
            if message == "back":
                self.unbecome()
            return name

    ref = system.spawn(Nested)
    messages = ["x", "deeper", "x", "back", "x", "back", "x"]
    expected = ["receive", "first", "second", "second", "first", "first", "receive"]
    assert ask_each(ref, *messages) == expected


def test_unbecome_at_the_first_handler_is_an_error(system: ActorSystem) -> None:
    ref = system.spawn(Scripted, name="plain", supervision="resume")
    with pytest.raises(
        CallboardError, match=r"unbecome\(\) in /plain, which has no earlier handler"
    ):
        ref.ask(lambda actor: actor.unbecome()).result(timeout=30)


@pytest.mark.parametrize("handler", [None, "receive"])
def test_become_wants_a_callable_and_names_what_it_got(system: ActorSystem, handler: Any) -> None:
    ref = system.spawn(Scripted)
    with pytest.raises(TypeError, match=rf"become\(\) expects a callable .*, got {handler!r}"):
        ref.ask(lambda actor: actor.become(handler)).result(timeout=30)


def test_become_in_on_start_chooses_the_first_handler(system: ActorSystem) -> None:
    class Starts(Actor[Any]):
        def on_start(self) -> None:
            self.become(lambda message: ("started", message))

        def receive(self, message: Any) -> str:
            return "never"

    assert system.spawn(Starts).ask(1).result(timeout=30) == ("started", 1)


def test_a_handler_may_be_a_coroutine_function(system: ActorSystem) -> None:
    class Waits(Actor[Any]):
        def receive(self, message: Any) -> None:
            self.become(self.slowly)

        async def slowly(self, message: Any) -> Any:
            await self.sleep(0)
            return ("slowly", message)

    assert ask_each(system.spawn(Waits), 1, 2) == [None, ("slowly", 2)]


def test_a_handler_that_replaces_itself_again_and_again_is_safe(system: ActorSystem) -> None:
    class Chameleon(Actor[int]):
        def receive(self, message: int) -> int:
            if message:
                self.unbecome()
            self.become(lambda message: self.receive(message))
            return message

    ref = system.spawn(Chameleon)
    assert ask_each(ref, *range(200)) == list(range(200))


# --- stash ----------------------------------------------------------------------------------------


class Locker(Actor[str]):
    """Puts everything aside until it is opened."""

    def __init__(self) -> None:
        self.is_open = False
        self.seen: list[tuple[str, ActorRef[Any] | None]] = []

    def receive(self, message: str) -> Any:
        if message == "fail":
            raise ValueError("as told")
        if message == "open":
            self.is_open = True
            self.unstash_all()
            return None
        if message == "report":
            return self.seen
        if not self.is_open:
            self.stash()
            return "of no use: it is put aside"
        self.seen.append((message, self.sender))
        return f"answer to {message}"


def test_a_message_that_was_put_aside_keeps_its_sender(system: ActorSystem) -> None:
    class Client(Actor[str]):
        def receive(self, message: str) -> Future[Any]:
            locker.tell("told")
            return locker.ask(message)

    locker = system.spawn(Locker)
    client = system.spawn(Client)
    answer = client.ask("asked")
    system.drain()
    locker.tell("open")
    assert answer.result(timeout=30) == "answer to asked"
    assert locker.ask("report").result(timeout=30) == [("told", client), ("asked", client)]


def test_a_message_stashed_again_keeps_its_place(system: ActorSystem) -> None:
    class Fussy(Actor[int]):
        """Handles numbers in ascending order from 0, whatever the order in which they come."""

        def __init__(self) -> None:
            self.seen: list[int] = []

        def receive(self, message: int) -> list[int] | None:
            if message < 0:
                return self.seen
            if message == len(self.seen):
                self.seen.append(message)
                self.unstash_all()
            else:
                self.stash()
            return None

    fussy = system.spawn(Fussy)
    for number in [5, 3, 1, 4, 2, 0]:
        fussy.tell(number)
    assert fussy.ask(-1).result(timeout=30) == [0, 1, 2, 3, 4, 5]


def test_unstash_all_with_nothing_aside_does_nothing(system: ActorSystem) -> None:
    assert system.spawn(Scripted).ask(lambda actor: actor.unstash_all()).result(timeout=30) is None


def test_a_message_is_put_aside_once(system: ActorSystem) -> None:
    def twice(actor: Scripted) -> None:
        actor.stash()
        actor.stash()

    ref = system.spawn(Scripted, supervision="resume")
    ref.tell(twice)
    system.drain()
    _, error = system.dead_letters.failures[-1]
    assert "is not handling a message" in str(error)


def test_there_is_nothing_to_put_aside_outside_of_receive(system: ActorSystem) -> None:
    class Early(Actor[Any]):
        def on_start(self) -> None:
            self.stash()

        def receive(self, message: Any) -> None:
            pass

    early = system.spawn(Early, name="early")
    system.drain()
    assert not early.is_alive
    path, error = system.dead_letters.failures[-1]
    assert path == "/early"
    assert issubclass(error.type, CallboardError)
    assert "stash() in /early, which is not handling a message" in str(error)


def test_a_restart_returns_to_the_first_handler(system: ActorSystem) -> None:
    class Moody(Actor[str]):
        def receive(self, message: str) -> str:
            self.become(self.broken)
            return "receive"

        def broken(self, message: str) -> str:
            raise ValueError("as a broken handler does")

    moody = system.spawn(Moody, supervision="restart")
    assert moody.ask("x").result(timeout=30) == "receive"
    with pytest.raises(ValueError, match="broken handler"):
        moody.ask("x").result(timeout=30)
    assert moody.ask("x").result(timeout=30) == "receive"


class Chosen(Actor[Any]):
    """Chooses its handler in the method that its argument names, and goes back at "back"."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.choose("__init__")

    def on_start(self) -> None:
        self.choose("on_start")

    def choose(self, where: str) -> None:
        if where == self.where:
            self.become(self.first)
            self.become(self.second)

    def receive(self, message: Any) -> Any:
        return "receive", message

    def first(self, message: Any) -> Any:
        if message == "back":
            self.unbecome()
        return "first", message

    def second(self, message: Any) -> Any:
        if message == "back":
            self.unbecome()
        if message == "fail":
            raise ValueError("as told")
        return "second", message


class ChosenAgain(Chosen):
    """One whose `receive` is no plain function."""

    receive = partialmethod(Chosen.receive)


@pytest.mark.parametrize("kind", [Chosen, ChosenAgain])
@pytest.mark.parametrize("where", ["__init__", "on_start"])
def test_the_first_message_goes_to_what_the_actor_became_at_its_start(
    system: ActorSystem, where: str, kind: type[Chosen]
) -> None:
    ref = system.spawn(kind, where, supervision="restart")
    expected = [("second", 1), ("second", "back"), ("first", "back"), ("receive", 2)]
    assert ask_each(ref, 1, "back", "back", 2) == expected
    again = system.spawn(kind, where, supervision="restart")
    assert isinstance(again.ask("fail").exception(30), ValueError)
    assert ask_each(again, 1, "back", "back", 2) == expected


def test_a_start_that_becomes_and_goes_back_leaves_receive(system: ActorSystem) -> None:
    class Wavering(Chosen):
        def __init__(self) -> None:
            super().__init__("__init__")
            self.unbecome()
            self.unbecome()
            with pytest.raises(CallboardError, match="which has no earlier handler"):
                self.unbecome()

    assert system.spawn(Wavering).ask(1).result(30) == ("receive", 1)


def test_a_start_that_becomes_and_fails_leaves_nothing_behind(system: ActorSystem) -> None:
    tries: list[int] = []

    class Slow(Chosen):
        def __init__(self) -> None:
            tries.append(1)
            if len(tries) == 1:
                self.become(self.first)
                raise ValueError("not yet")
            super().__init__("nowhere")

    assert system.spawn(Slow, supervision="restart").ask(1).result(30) == ("receive", 1)


def test_a_batch_goes_to_what_the_actor_became_in_its_start(system: ActorSystem) -> None:
    class Many(Actor[Any]):
        def __init__(self) -> None:
            self.seen: list[Any] = []
            self.become(self.one)

        def receive(self, message: Any) -> Any:
            return list(self.seen)

        def receive_many(self, messages: list[Any]) -> None:
            self.seen.append(messages)

        def one(self, message: Any) -> Any:
            if message != "end":
                self.seen.append(message)
            return self.seen

    ref = system.spawn(Many)
    ref.tell_many([1, 2, 3])
    assert ref.ask("end").result(30) == [1, 2, 3]
