"""`Supervision(expected=...)`: expected errors answer a message and are not failures."""

import logging
from typing import Any

import pytest

from callboard import Actor, ActorSystem, ConfigError, DeadLetter, Supervision
from callboard.testing import ManualSystem, replay


class Refused(Exception):
    """An error that the actor's author expects."""


class Till(Actor[Any]):
    """Refuses what is not a number, and fails at zero."""

    def __init__(self) -> None:
        self.handled = 0

    def receive(self, message: Any) -> Any:
        if message == "stash":
            self.stash()
        if not isinstance(message, int):
            raise Refused(message)
        self.handled += 1
        return 1 // message and self.handled

    def on_failure(self, error: BaseException, message: Any) -> None:
        assert not isinstance(error, Refused)


class SlowTill(Till):
    async def receive(self, message: Any) -> Any:
        await self.sleep(0.0)
        return super().receive(message)


@pytest.mark.parametrize("expected", [Refused, (KeyError, Refused), (Exception,)])
@pytest.mark.parametrize("cls", [Till, SlowTill])
@pytest.mark.parametrize("directive", ["stop", "restart", "escalate"])
@replay(seeds=3)
def test_an_expected_error_is_the_answer_and_the_actor_goes_on(
    seed: int, caplog: pytest.LogCaptureFixture, directive: Any, cls: type[Till], expected: Any
) -> None:
    letters: list[DeadLetter] = []
    caplog.clear()
    with ManualSystem(seed) as system, caplog.at_level(logging.INFO, "callboard"):
        system.dead_letters.subscribe(letters.append)
        till = system.spawn(cls, supervision=Supervision(directive, expected=expected))
        assert till.ask(1).result(1.0) == 1
        caplog.clear()
        with pytest.raises(Refused, match="beer"):
            till.ask("beer").result(1.0)
        till.tell("beer")
        assert till.ask(1).result(1.0) == 2  # no restart
    assert not letters
    assert not [one for one in caplog.records if one.levelno > logging.INFO]
    assert system.dead_letters.failure_count == 0


def test_a_refused_tell_is_one_line_at_the_level_debug(caplog: pytest.LogCaptureFixture) -> None:
    with ManualSystem() as system, caplog.at_level(logging.DEBUG, "callboard"):
        till = system.spawn(Till, name="till", supervision=Supervision(expected=Refused))
        till.ask(1).result()
        caplog.clear()
        till.tell("beer")
        assert till.ask("wine").exception() is not None
        [line] = [one.getMessage() for one in caplog.records]
    assert line == "actor refused a message actor=/till error=Refused('beer')"


def test_all_other_errors_are_failures_as_before(manual: ManualSystem) -> None:
    till = manual.spawn(Till, supervision=Supervision("restart", expected=(Refused,)))
    assert till.ask(1).result() == 1
    assert isinstance(till.ask(0).exception(), ZeroDivisionError)
    assert till.ask(1).result() == 1
    assert manual.dead_letters.reasons == {"failed": 1}


def test_an_expected_error_in_the_start_is_a_failure(manual: ManualSystem) -> None:
    class Late(Till):
        def on_start(self) -> None:
            raise Refused("closed")

    till = manual.spawn(Late, supervision=Supervision(expected=Refused))
    assert till.ended.result().reason == "failed to start"


def test_a_message_that_was_put_aside_and_refused_waits_for_its_second_turn() -> None:
    with ManualSystem() as system:
        till = system.spawn(Till, supervision=Supervision(expected=Refused))
        asked = till.ask("stash")
        system.run_until_idle()
        assert not asked.done()


def test_workers_threads_refuse_alike(system: ActorSystem) -> None:
    till = system.spawn(Till, supervision=Supervision(expected=Refused))
    asked = [till.ask("beer" if number % 2 else number + 1) for number in range(200)]
    errors = [future.exception(30) for future in asked]
    assert [isinstance(error, Refused) for error in errors] == [bool(n % 2) for n in range(200)]
    assert system.dead_letters.count == 0


@pytest.mark.parametrize("wrong", ["Refused", [Refused], (int,), BaseException, Refused("x")])
def test_expected_errors_are_classes_of_exceptions(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="`expected` is for classes of exceptions"):
        Supervision(expected=wrong)
