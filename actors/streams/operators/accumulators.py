"""States of scan(), fold() and count(): an accumulator, or a number of rows."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any

from callboard.core.text import safe_repr
from callboard.streams.checks import check_function
from callboard.streams.errors import GraphError
from callboard.streams.planning.operator import Operator, label_of
from callboard.streams.programs.rows.keyed import Count, Scan


def count() -> Operator:
    """Count rows."""
    return Operator(kind="count", program=Count, stateful=True)


def accumulator(kind: str, initial: Any, function: Any) -> Operator:
    """Accumulate, and give each accumulator ("scan") or the last one ("fold")."""
    check_function(f"{kind}()'s second argument", function)
    try:
        deepcopy(initial)
    except Exception as error:
        what = f"{kind}()'s first argument is copied for each run, and for each key, and"
        raise GraphError(f"{what} {safe_repr(initial)} cannot be: {error}") from error
    return Operator(
        kind=kind,
        program=partial(Scan, initial=initial, function=function, marks_end=kind == "fold"),
        label=label_of(function, kind),
        stateful=True,
    )
