import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from callboard.core import checks
from callboard.core.errors import ConfigError


class Silent:
    """Has neither text."""

    def __repr__(self) -> str:
        raise LookupError("no text")


@pytest.mark.parametrize("value", [0, 1.0, math.nan, math.inf, "1", True, None, Silent(), 10**30])
def test_a_whole_number_is_one_within_its_bounds(value: object) -> None:
    with pytest.raises(ValueError, match=r"^a size must be a whole number .*, got "):
        checks.whole("a size", value)


def test_the_error_of_a_whole_number_names_its_bounds() -> None:
    with pytest.raises(ConfigError, match="workers must be a whole number from 1 to 8, got 9"):
        checks.whole("workers", 9, 1, 8, error=ConfigError)
    with pytest.raises(
        ValueError, match=r"a size must be a whole number from 1 to 2\*\*63 - 1, got"
    ):
        checks.whole("a size", 2**63)


@pytest.mark.parametrize("value", [-1, math.nan, math.inf, -math.inf, "1", True, 10**400, 1e300])
@pytest.mark.parametrize("check", [checks.seconds, checks.timeout])
def test_a_time_is_a_finite_number_of_seconds(check: Callable[..., Any], value: object) -> None:
    with pytest.raises(
        ValueError, match="a timeout must be a number of seconds from 0 to 1e9, got"
    ):
        check("a timeout", value)


def test_a_period_is_above_zero() -> None:
    with pytest.raises(
        ValueError, match="a period must be a number of seconds above 0 and at most 1e9"
    ):
        checks.seconds("a period", 0, zero=False)


@pytest.mark.parametrize("value", [math.nan, math.inf, "1", True, None, 10**400])
def test_a_finite_number_is_neither_text_nor_a_switch(value: object) -> None:
    with pytest.raises(ValueError, match="a lag must be a finite number, got"):
        checks.finite("a lag", value)


@pytest.mark.parametrize("value", ["no", "", 0, 1, None, math.nan])
def test_a_switch_is_neither_text_nor_a_number(value: object) -> None:
    with pytest.raises(ValueError, match="dedicated must be True or False, got"):
        checks.flag("dedicated", value)


def test_a_word_is_one_of_those_there_are() -> None:
    assert checks.one_of("a level", "off", ("off", "times")) == "off"
    wrong: object
    for wrong in ("Off", "", [], math.nan):
        with pytest.raises(ValueError, match="a level must be one of off, times, got"):
            checks.one_of("a level", wrong, ("off", "times"))


def test_a_right_value_is_returned() -> None:
    assert checks.whole("a size", np.int64(3)) == 3
    assert checks.finite("a lag", Fraction(1, 2)) == Fraction(1, 2)
    assert checks.finite("a lag", 10**18 + 1) == 10**18 + 1
    assert checks.seconds("a time", np.float32(0.5)) == 0.5
    assert checks.seconds("a time", 0) == 0
    assert checks.timeout("a timeout", None) is None
    assert checks.flag("a switch", False) is False
