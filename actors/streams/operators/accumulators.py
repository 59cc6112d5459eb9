"""What is known of the rows so far: their accumulator, or their number."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any

from callboard.core.text import safe_repr
from callboard.streams.checks import check_function
from callboard.streams.errors import GraphError
from callboard.streams.planning.operator import Operator, label_of
from callboard.streams.programs.keyed import Count, Fold, Scan


def scan(initial: Any, function: Any) -> Operator:
    """Accumulate, and give each accumulator."""
    return _accumulator("scan", Scan, initial, function)


def fold(initial: Any, function: Any) -> Operator:
    """Accumulate, and give the last accumulator."""
    return _accumulator("fold", Fold, initial, function)


def count() -> Operator:
    """Count rows."""
    return Operator(kind="count", program=Count, stateful=True)


def _accumulator(kind: str, program: type[Scan], initial: Any, function: Any) -> Operator:
    check_function(f"{kind}()'s second argument", function)
    try:
        deepcopy(initial)
    except Exception as error:
        what = f"{kind}()'s first argument is copied for each run, and for each key, and"
        raise GraphError(f"{what} {safe_repr(initial)} cannot be: {error}") from error
    return Operator(
        kind=kind,
        program=partial(program, initial=initial, function=function),
        label=label_of(function, kind),
        stateful=True,
    )
