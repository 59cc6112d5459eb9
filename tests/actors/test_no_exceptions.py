"""A BaseException such as SystemExit, raised where the runtime calls foreign code: logging, texts
of errors, subscribers, callbacks. It neither ends a worker nor reaches a sender.
"""

import asyncio
import logging
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from callboard import Actor, ActorRef, ActorStopped, ActorSystem, DeadLetter
from callboard.testing import ManualSystem


class Odd(BaseException):
    """Nobody expects it."""


KINDS = [SystemExit, KeyboardInterrupt, GeneratorExit, pytest.fail.Exception, Odd]


class Failing(Exception):
    """One that cannot be printed."""

    def __init__(self, kind: type[BaseException], method: str) -> None:
        self.kind = kind
        self.method = method

    def __str__(self) -> str:
        if self.method == "str":
            raise self.kind("as told")
        return "failing"

    def __repr__(self) -> str:
        if self.method == "repr":
            raise self.kind("as told")
        return "Failing()"

    @property
    def __notes__(self) -> list[str]:  # type: ignore[override]
        if self.method == "notes":
            raise self.kind("as told")
        return []


class Counting(Actor[Any]):
    def __init__(self) -> None:
        self.count = 0

    def receive(self, message: Any) -> int:
        if isinstance(message, BaseException):
            raise message
        self.count += 1
        return self.count


class Raising(logging.Handler):
    kind: type[BaseException] = SystemExit

    def emit(self, record: logging.LogRecord) -> None:
        raise self.kind("as told")


@pytest.fixture
def raising() -> Iterator[Raising]:
    handler = Raising()
    logger = logging.getLogger("callboard")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


def _has_its_directive(system: ActorSystem, directive: Any, error: BaseException) -> None:
    ref = system.spawn(Counting, supervision=directive)
    bystander = system.spawn(Counting)
    assert ref.ask(None).result(30) == 1
    assert ref.ask(error).exception(30) is error
    if directive == "stop":
        with pytest.raises(ActorStopped):
            ref.ask(None).result(30)
    else:
        assert ref.ask(None).result(30) == (1 if directive == "restart" else 2)
    assert bystander.ask(None).result(30) == 1
    system.drain(30)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("directive", ["stop", "restart", "resume"])
def test_a_logging_handler_that_ends_threads_leaves_supervision_as_it_is(
    system: ActorSystem, raising: Raising, directive: str, kind: type[BaseException]
) -> None:
    raising.kind = kind
    _has_its_directive(system, directive, ValueError("as told"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["str", "repr", "notes"])
@pytest.mark.parametrize("directive", ["stop", "restart", "resume"])
def test_a_text_of_an_error_that_ends_threads_leaves_supervision_as_it_is(
    system: ActorSystem, directive: str, method: str, kind: type[BaseException]
) -> None:
    _has_its_directive(system, directive, Failing(kind, method))


@pytest.mark.parametrize("kind", KINDS)
def test_a_hook_that_fails_beside_a_handler_that_exits_is_only_a_failure(
    system: ActorSystem, raising: Raising, kind: type[BaseException]
) -> None:
    class Hooked(Counting):
        def on_failure(self, error: BaseException, message: Any) -> None:
            raise Failing(kind, "str")

        def on_stop(self) -> None:
            raise Failing(kind, "str")

    raising.kind = kind
    ref = system.spawn(Hooked, supervision="restart")
    assert isinstance(ref.ask(ValueError()).exception(30), ValueError)
    assert ref.ask(None).result(30) == 1
    ref.stop()
    system.drain(30)
    assert not ref.is_alive


@pytest.mark.parametrize("kind", KINDS)
def test_a_decider_that_exits_stops_its_actor(
    system: ActorSystem, raising: Raising, kind: type[BaseException]
) -> None:
    def decide(error: BaseException) -> Any:
        raise Failing(kind, "str")

    raising.kind = kind
    ref = system.spawn(Counting, supervision=decide)
    assert isinstance(ref.ask(ValueError()).exception(30), ValueError)
    assert isinstance(ref.ask(None).exception(30), ActorStopped)


@pytest.mark.parametrize("kind", KINDS)
def test_errors_of_a_subscriber_of_dead_letters_do_not_come_out_of_a_tell(
    system: ActorSystem, caplog: pytest.LogCaptureFixture, kind: type[BaseException]
) -> None:
    def leave(letter: DeadLetter) -> None:
        raise kind("as told")

    seen: list[Any] = []
    ref = system.spawn(Counting)
    ref.stop()
    system.drain(30)
    system.dead_letters.subscribe(leave)
    system.dead_letters.subscribe(lambda letter: seen.append(letter.message))
    ref.tell("late")
    ref.tell_many(["later", "last"])
    assert isinstance(ref.ask("asked").exception(30), ActorStopped)
    system.drain(30)
    assert seen == ["late", "later", "last", "asked"]
    assert "a subscriber of dead letters failed" in caplog.text


def test_ctrl_c_in_a_subscriber_of_dead_letters_ends_the_program_all_the_same() -> None:
    with ManualSystem() as system:
        ref = system.spawn(Counting)
        ref.stop()
        system.run_until_idle()
        system.dead_letters.subscribe(lambda letter: signal.raise_signal(signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            ref.tell("late")


@pytest.mark.parametrize("kind", KINDS)
def test_a_message_whose_repr_exits_is_a_dead_letter_that_can_be_printed(
    system: ActorSystem, kind: type[BaseException]
) -> None:
    class Message:
        def __repr__(self) -> str:
            raise kind("as told")

    texts: list[str] = []
    system.dead_letters.subscribe(lambda letter: texts.append(repr(letter)))
    ref = system.spawn(Counting)
    ref.stop()
    system.drain(30)
    ref.tell(Message())
    system.drain(30)
    assert f"whose repr() raised {kind.__qualname__}" in texts[0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_watcher_and_a_callback_hear_of_an_end_though_a_handler_exits(
    system: ActorSystem, raising: Raising, kind: type[BaseException]
) -> None:
    class Watching(Actor[Any]):
        def __init__(self, other: ActorRef[Any]) -> None:
            self.seen = 0
            self.watch(other)

        def receive(self, message: Any) -> int:
            self.seen += message != "how many"
            return self.seen

    def leave(future: Any) -> None:
        raise kind("as told")

    raising.kind = kind
    ref = system.spawn(Counting)
    watcher = system.spawn(Watching, ref)
    assert watcher.ask("how many").result(30) == 0
    asked = ref.ask(Failing(kind, "str"))
    asked.add_done_callback(leave)
    assert isinstance(asked.exception(30), Failing)
    system.drain(30)
    assert watcher.ask("how many").result(30) == 1


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_a_callback_of_asyncio_that_exits_does_not_take_the_event_loop_away(
    system: ActorSystem, caplog: pytest.LogCaptureFixture, kind: type[BaseException]
) -> None:
    def leave() -> None:
        raise kind("as told")

    class Awaiting(Actor[Any]):
        async def receive(self, action: Callable[[], None] | None) -> str:
            if action is not None:
                asyncio.get_running_loop().call_soon(action)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            return "done"

    ref = system.spawn(Awaiting, event_loop=True)
    assert ref.ask(leave).result(30) == "done"
    assert ref.ask(None).result(30) == "done"
    assert "a callback would have ended the event loop" in caplog.text


def test_a_handler_that_calls_sys_exit_does_not_hold_up_a_stop(raising: Raising) -> None:
    class Exits(Actor[Any]):
        def receive(self, message: Any) -> None:
            sys.exit(3)

    with ActorSystem(workers=1) as system:
        assert isinstance(system.spawn(Exits).ask(None).exception(30), SystemExit)
