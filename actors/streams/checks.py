"""Checks of operators' arguments: each raises GraphError, with the fact and the value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from callboard.core.text import safe_repr
from callboard.streams.errors import GraphError


def check_function(what: str, value: Any) -> None:
    """Check that something can be called."""
    if not callable(value):
        raise GraphError(f"{what} is a function, not {value!r}")


def check_count(what: str, value: Any) -> None:
    """Check that something is an integer from 1 on."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise GraphError(f"{what} is an integer, 1 or more, not {value!r}")


def check_name(what: str, value: Any) -> None:
    """Check that something is a name."""
    if not isinstance(value, str) or not value:
        raise GraphError(f"{what} is a string that is not empty, not {value!r}")


def check_choice(what: str, value: Any, choices: Sequence[str]) -> None:
    """Check that something is one of a few words."""
    if value not in choices:
        raise GraphError(f"{what} is one of {', '.join(map(repr, choices))}, not {value!r}")


def check_value(what: str, value: Any) -> None:
    """Check, for one row, a value that rows are told apart or put in order by. Raises ValueError.

    NaN has no place in an order, and is not even equal to itself.
    """
    if value != value:
        raise ValueError(f"{what} is a value that is equal to itself, not {safe_repr(value)}")
