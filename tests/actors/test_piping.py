"""`self.pipe`: the outcome of a future comes as a message."""

import concurrent.futures
from typing import Any

import pytest

from callboard import Actor, ActorRef, BoundedMailbox, PipeFailed
from callboard.testing import ManualSystem


class Slow(Actor[Any]):
    async def receive(self, message: Any) -> Any:
        await self.sleep(1)
        return 1 // message


class Piping(Actor[Any]):
    def __init__(self, slow: ActorRef[Any], log: list[Any]) -> None:
        self.slow = slow
        self.log = log

    def receive(self, message: Any) -> None:
        match message:
            case ("ask", what, options):
                self.pipe(self.slow.ask(what), **options)
            case ("pipe", future):
                self.pipe(future)
            case _:
                self.log.append(message)


def test_an_answer_comes_as_a_message_while_the_actor_goes_on() -> None:
    log: list[Any] = []
    with ManualSystem() as system:
        piping = system.spawn(Piping, system.spawn(Slow), log)
        piping.tell(("ask", 1, {}))
        piping.tell("meanwhile")
        system.run_until_idle()
        assert log == ["meanwhile"]
        system.advance(1)
    assert log == ["meanwhile", 1]


def test_an_error_comes_as_a_message_too() -> None:
    log: list[Any] = []
    with ManualSystem() as system:
        slow = system.spawn(Slow, supervision="resume")
        piping = system.spawn(Piping, slow, log)
        piping.tell(("ask", 0, {}))
        piping.tell(("ask", 1, {"wrap": lambda answer: answer // 0}))
        piping.tell(("ask", 1, {"wrap": lambda answer: ("wrapped", answer)}))
        system.advance(5)
    assert [type(message.error) for message in log[:2]] == [ZeroDivisionError] * 2
    assert isinstance(log[0], PipeFailed)
    assert log[2] == ("wrapped", 1)


def test_another_recipient_can_be_told(manual: ManualSystem) -> None:
    probe = manual.probe()
    piping = manual.spawn(Piping, manual.spawn(Slow), [])
    piping.tell(("ask", 1, {"to": probe.ref}))
    manual.advance(2)
    assert probe.receive_one() == 1


def test_a_full_mailbox_does_not_hold_up_the_thread_that_answers() -> None:
    log: list[Any] = []
    with ManualSystem() as system:
        theirs: concurrent.futures.Future[Any] = concurrent.futures.Future()
        piping = system.spawn(Piping, system.spawn(Slow), log, mailbox=BoundedMailbox(1))
        piping.tell(("pipe", theirs))
        system.run_until_idle()
        piping.tell("full")
        theirs.set_result("past the capacity")
        system.run_until_idle()
    assert log == ["full", "past the capacity"]


def test_an_outcome_for_an_actor_that_has_stopped_is_a_dead_letter(manual: ManualSystem) -> None:
    letters: list[Any] = []
    manual.dead_letters.subscribe(letters.append)
    theirs: concurrent.futures.Future[Any] = concurrent.futures.Future()
    piping = manual.spawn(Piping, manual.spawn(Slow), [])
    piping.tell(("pipe", theirs))
    manual.run_until_idle()
    piping.stop()
    manual.run_until_idle()
    theirs.set_result("late")
    manual.run_until_idle()
    assert [letter.message for letter in letters] == ["late"]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda self: self.pipe(5), r"pipe\(\) expects futures, got 5"),
        (lambda self: self.pipe(self.sleep(1), to=5), "expected a ref or another recipient, got 5"),
        (lambda self: self.pipe(self.sleep(1), wrap=5), "expects a function as `wrap`, got 5"),
    ],
)
def test_wrong_arguments_are_errors_at_the_call(call: Any, error: str) -> None:
    class Wrong(Actor[Any]):
        def receive(self, message: Any) -> None:
            call(self)

    with ManualSystem() as system, pytest.raises(TypeError, match=error):
        system.spawn(Wrong).ask("now").result()
