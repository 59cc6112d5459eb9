"""`ManualSystem(failures="raise")`: a failing actor fails the test."""

from typing import Any

import pytest

from callboard import Actor, Supervision
from callboard.testing import ManualSystem, replay


class Careless(Actor[Any]):
    def receive(self, message: int) -> float:
        return 1 / message

    def on_stop(self) -> None:
        if self.children:
            raise AssertionError


class Stubborn(Careless):
    def on_stop(self) -> None:
        raise KeyError("stays")


@pytest.mark.parametrize("directive", ["stop", "restart", "resume", "escalate"])
@replay(seeds=5)
def test_the_step_in_which_an_actor_fails_raises_its_error(seed: int, directive: Any) -> None:
    system = ManualSystem(seed, failures="raise")
    ref = system.spawn(Careless, supervision=Supervision(directive))
    ref.tell_many([1, 0, 2])
    with pytest.raises(ZeroDivisionError):
        system.run_until_idle()
    assert system.dead_letters.failure_count == 1
    if directive in ("restart", "resume"):
        system.run_until_idle()
        assert ref.ask(4).result() == 0.25
    system.stop()


def test_an_expected_error_is_not_raised_by_a_step() -> None:
    with ManualSystem(failures="raise") as system:
        ref = system.spawn(Careless, supervision=Supervision(expected=ZeroDivisionError))
        ref.tell(0)
        system.run_until_idle()


def test_a_failure_comes_out_of_the_block() -> None:
    def leave(*, early: bool) -> None:
        with ManualSystem(failures="raise") as system:
            system.spawn(Careless).tell(0)
            if early:
                system.run_until_idle()

    with pytest.raises(ZeroDivisionError):
        leave(early=False)
    with pytest.raises(ZeroDivisionError) as raised:
        leave(early=True)
    assert any("the latest 1 of 1 messages" in note for note in raised.value.__notes__)


def test_a_failure_at_the_stop_does_not_keep_the_system_from_its_end() -> None:
    with ManualSystem(failures="raise") as system:
        system.spawn(Stubborn).tell(1)
        system.run_until_idle()
    assert system.is_closed
    assert system.dead_letters.failure_count == 1


def test_by_default_failures_are_logged(manual: ManualSystem) -> None:
    manual.spawn(Careless).tell(0)
    manual.run_until_idle()
    assert manual.dead_letters.failure_count == 1


def test_failures_is_one_of_two_words() -> None:
    with pytest.raises(ValueError, match="failures must be one of log, raise, got 'fail'"):
        ManualSystem(failures="fail")  # type: ignore[arg-type]
