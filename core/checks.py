"""Checks of arguments for the whole package: numbers, times and booleans.

Each returns the checked value, or raises `error` with the fact and the value. `what` is the subject
of the sentence: "workers", "a mailbox's timeout". As a number, NaN, infinity, a string of digits or
a bool raises `error` everywhere; NumPy's numbers are accepted.
"""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Sequence
from contextlib import suppress
from numbers import Real
from typing import Any

from callboard.core.text import safe_repr

# Whole numbers are stored in 63 bits, unless the caller gives a narrower range.
LARGEST = 2**63 - 1
# 31 years. In nanoseconds it fits into 63 bits with room for the clock, and Python's locks take it.
LONGEST = 1e9


def whole(
    what: str,
    value: Any,
    least: int = 1,
    most: int | None = None,
    *,
    error: type[Exception] = ValueError,
) -> int:
    """Check that `value` is a whole number from `least` to `most`, by default of 63 bits."""
    number = None
    if not isinstance(value, bool):
        with suppress(TypeError):
            number = operator.index(value)
    if number is None or not least <= number <= (LARGEST if most is None else most):
        if most is None and (number is None or number < least):
            range_ = f"of at least {least}"
        else:
            range_ = f"from {least} to {'2**63 - 1' if most is None else most}"
        raise error(f"{what} must be a whole number {range_}, got {safe_repr(value)}")
    return number


def finite(what: str, value: Any, *, error: type[Exception] = ValueError) -> float | int:
    """Check that `value` is a finite number. An integer stays one."""
    if _is_finite(value):
        return value  # type: ignore[no-any-return]
    raise error(f"{what} must be a finite number, got {safe_repr(value)}")


def seconds(
    what: str, value: Any, *, zero: bool = True, error: type[Exception] = ValueError
) -> float:
    """Check that `value` is a number of seconds from 0 to 1e9; without `zero` not 0."""
    if _is_finite(value) and (value >= 0 if zero else value > 0) and value <= LONGEST:
        return float(value)
    range_ = "from 0 to 1e9" if zero else "above 0 and at most 1e9"
    raise error(f"{what} must be a number of seconds {range_}, got {safe_repr(value)}")


def timeout(what: str, value: Any, *, error: type[Exception] = ValueError) -> float | None:
    """Check that `value` is a number of seconds from 0 to 1e9, or None, which sets no limit."""
    return None if value is None else seconds(what, value, error=error)


def flag(what: str, value: Any, *, error: type[Exception] = ValueError) -> bool:
    """Check that `value` is True or False. A string such as "no" would be true to Python."""
    if isinstance(value, bool):
        return value
    raise error(f"{what} must be True or False, got {safe_repr(value)}")


def one_of(
    what: str, value: Any, choices: Sequence[str], *, error: type[Exception] = ValueError
) -> str:
    """Check that `value` is one of a few words."""
    if isinstance(value, str) and value in choices:
        return str(value)
    raise error(f"{what} must be one of {', '.join(choices)}, got {safe_repr(value)}")


def takes(**options: Any) -> inspect.Signature:
    """Return a signature with these options, for a compiled class, which has none."""
    return inspect.Signature(
        [
            inspect.Parameter(option, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)
            for option, default in options.items()
        ]
    )


def _is_finite(value: Any) -> bool:
    if type(value) is float:  # the commonest type, quickly
        return math.isfinite(value)
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond the floats
        return False


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, or the missing value of pandas or NumPy."""
    if value is None:
        return True
    differs = value != value
    if differs is value and (value == value) is value:  # the NA of pandas, which has no truth value
        return True
    return bool(differs)
