"""Operators whose outputs are answers that come later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from callboard._inside.sending.ref import ActorRef
from callboard.core import checks
from callboard.core.text import safe_repr
from callboard.recipient import is_recipient, path_of
from callboard.streams.checks import MOST, check_count, check_function
from callboard.streams.errors import GraphError
from callboard.streams.planning.operator import Operator, label_of
from callboard.streams.programs.rows.answers import Answers
from callboard.streams.programs.rows.coroutines import Coroutines

_MOST_RETRIES = 1_000


def map_awaited(
    function: Any, in_flight: Any, timeout: Any, retries: Any, backoff: Any
) -> Operator:
    """Await a function of many rows at a time."""
    if not callable(function):
        raise GraphError(f"map()'s argument is a function, not {safe_repr(function)}")
    seconds, retries, backoff = _checked(timeout, retries, backoff)
    coroutines = partial(Coroutines, function, seconds, retries, backoff)
    return _operator("map", label_of(function, "map"), "", in_flight, coroutines=coroutines)


def ask(
    recipient: Any, in_flight: Any, timeout: Any, retries: Any, backoff: Any, combine: Any
) -> Operator:
    """Ask a recipient with many rows at a time."""
    if not is_recipient(recipient):
        raise GraphError(f"ask() takes a ref of an actor, not {safe_repr(recipient)}")
    if combine is not None:
        check_function("combine", combine)
    seconds, retries, backoff = _checked(timeout, retries, backoff)
    call: Callable[[Any], Any] = recipient.ask
    if seconds is not None:
        call = partial(recipient.ask, timeout=seconds)
    options = {"ask": call, "combine": combine, "retries": retries, "backoff": backoff}
    waits = not isinstance(recipient, ActorRef)  # for another process, maybe
    operator = _operator("ask", "ask", path_of(recipient), in_flight, **options)
    return replace(operator, waits=waits)


def _checked(timeout: Any, retries: Any, backoff: Any) -> tuple[float | None, int, float]:
    seconds = None
    if timeout is not None:
        seconds = checks.seconds("timeout", timeout, zero=False, error=GraphError)
    retries = check_count("retries", retries, 0, _MOST_RETRIES)
    return seconds, retries, checks.seconds("backoff", backoff, error=GraphError)


def _operator(kind: str, label: str, what: str, in_flight: Any, **options: Any) -> Operator:
    most = check_count("in_flight", in_flight, 1, MOST)
    return Operator(
        kind=kind,
        program=partial(Answers, most=most, **options),
        label=label,
        detail=", ".join(filter(None, [what, f"{most:,} at a time"])),
        stateful=True,
    )
