"""Exceptions that come from signals, and those that only look like it."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

import pytest

from callboard.core.interrupts import comes_from_signal
from callboard.core.text import safe_repr, safe_str


def _raised(function: Callable[[], object]) -> BaseException:
    try:
        function()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def _interrupt() -> None:
    raise KeyboardInterrupt


def _press_ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.fixture
def handled() -> Iterator[None]:
    def leave(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    yield
    signal.signal(signal.SIGTERM, before)


def test_ctrl_c_comes_from_a_signal() -> None:
    assert comes_from_signal(_raised(_press_ctrl_c))


def test_an_exception_of_a_python_handler_comes_from_a_signal(handled: None) -> None:
    assert comes_from_signal(_raised(lambda: signal.raise_signal(signal.SIGTERM)))


@pytest.mark.parametrize("function", [_interrupt, sys.exit, lambda: 1 / 0])
def test_an_exception_of_other_code_does_not(function: Callable[[], object]) -> None:
    assert not comes_from_signal(_raised(function))


def test_no_signal_is_handled_outside_the_main_thread() -> None:
    error = _raised(_press_ctrl_c)
    seen: list[bool] = []
    thread = threading.Thread(target=lambda: seen.append(comes_from_signal(error)))
    thread.start()
    thread.join(30)
    assert seen == [False]


class _Odd:
    def __init__(self, action: Callable[[], object]) -> None:
        self.action = action

    def __repr__(self) -> str:
        self.action()
        return "odd"


def test_a_text_that_exits_has_a_stand_in() -> None:
    odd = _Odd(sys.exit)
    assert safe_repr(odd) == "<_Odd, whose repr() raised SystemExit>"
    assert safe_str(odd) == "<_Odd, whose str() raised SystemExit>"


@pytest.mark.parametrize("text", [safe_repr, safe_str])
def test_ctrl_c_in_the_middle_of_a_text_is_not_lost(text: Callable[[object], str]) -> None:
    with pytest.raises(KeyboardInterrupt):
        text(_Odd(_press_ctrl_c))
