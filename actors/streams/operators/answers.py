"""Operators whose outputs arrive later, as answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from callboard._inside.sending.ref import ActorRef
from callboard.core import checks
from callboard.core.text import safe_repr
from callboard.recipient import is_recipient, path_of
from callboard.streams.checks import MOST, check_count, check_flag, check_function
from callboard.streams.errors import GraphError
from callboard.streams.planning.operator import Operator, label_of
from callboard.streams.programs.rows.answers import Answers, UnorderedAnswers
from callboard.streams.programs.rows.coroutines import Coroutines

_MOST_RETRIES = 1_000


@dataclass(frozen=True)
class Asking:
    """The options of operators that wait for answers, as given to the methods of streams."""

    in_flight: int
    ordered: bool
    timeout: float | None
    tries: dict[str, Any]
    """The options of what tries a row again."""


def asking(
    in_flight: Any, ordered: Any, timeout: Any, retries: Any, backoff: Any, jitter: Any
) -> Asking:
    """Check how rows are to be asked about. Raises GraphError."""
    check_flag("ordered", ordered)
    if timeout is not None:
        timeout = checks.seconds("timeout", timeout, zero=False, error=GraphError)
    if not 0 <= checks.finite("jitter", jitter, error=GraphError) <= 1:
        raise GraphError(f"jitter must be a fraction from 0 to 1, got {jitter!r}")
    tries = {
        "retries": check_count("retries", retries, 0, _MOST_RETRIES),
        "backoff": checks.seconds("backoff", backoff, error=GraphError),
        "jitter": float(jitter),
    }
    return Asking(check_count("in_flight", in_flight, 1, MOST), ordered, timeout, tries)


def map_awaited(function: Any, way: Asking) -> Operator:
    """Await a function of many rows at a time."""
    if not callable(function):
        raise GraphError(f"map()'s argument: expected a function, got {safe_repr(function)}")
    coroutines = partial(Coroutines, function, way.timeout, **way.tries)
    return _operator("map", label_of(function, "map"), "", way, coroutines=coroutines)


def ask(recipient: Any, combine: Any, way: Asking) -> Operator:
    """Ask a recipient with many rows at a time."""
    if not is_recipient(recipient):
        raise GraphError(f"ask() expects the ref of an actor, got {safe_repr(recipient)}")
    if combine is not None:
        check_function("combine", combine)
    call: Callable[[Any], Any] = recipient.ask
    if way.timeout is not None:
        call = partial(recipient.ask, timeout=way.timeout)
    options = {"ask": call, "combine": combine, **way.tries}
    waits = not isinstance(recipient, ActorRef)  # for another process, maybe
    operator = _operator("ask", "ask", path_of(recipient), way, **options)
    return replace(operator, waits=waits)


def _operator(kind: str, label: str, what: str, way: Asking, **options: Any) -> Operator:
    most, ordered = way.in_flight, way.ordered
    in_order = partial(Answers, most=most, **options)
    as_they_come = partial(UnorderedAnswers, most=most, **options)
    said = [what, f"{most:,} at a time", "" if ordered else "answers as they come"]
    return Operator(
        kind=kind,
        program=in_order if ordered else as_they_come,
        in_chunks=not ordered,
        program_by_row=None if ordered else in_order,
        label=label,
        detail=", ".join(filter(None, said)),
        stateful=True,
    )
