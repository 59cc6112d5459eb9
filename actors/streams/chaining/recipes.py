"""Operators with a state, as the streams with keys and those without both make them.

Each function checks an operator's arguments, and answers what `Operator` takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from functools import partial
from typing import Any

from callboard.core.text import safe_repr
from callboard.streams.checks import (
    check_choice,
    check_count,
    check_function,
    check_receiver,
    check_sides,
)
from callboard.streams.errors import GraphError
from callboard.streams.planning.operator import label_of
from callboard.streams.programs.arrow import batch_of
from callboard.streams.programs.bounds import Bounds
from callboard.streams.programs.clock import Clock
from callboard.streams.programs.keyed import Count, Fold, Lots, Objects, Scan
from callboard.streams.programs.sessions import Sessions
from callboard.streams.programs.stateless import FlatMap
from callboard.streams.programs.states import Distinct, Reduction, Top
from callboard.streams.programs.timed import Timed
from callboard.streams.programs.window_states import ByCount, Fixed
from callboard.streams.programs.windows import Session, Sliding, Tumbling, check_lag

Recipe = dict[str, Any]


def itself(row: Any) -> Any:
    """Answer the row."""
    return row


def scan(initial: Any, function: Any) -> Recipe:
    """Accumulate, and give each accumulator."""
    check_function("scan()'s second argument", function)
    _check_initial("scan", initial)
    label = label_of(function, "scan")
    return _stateful("scan", Scan, (initial, function), label)


def fold(initial: Any, function: Any) -> Recipe:
    """Accumulate, and give the last accumulator."""
    check_function("fold()'s second argument", function)
    _check_initial("fold", initial)
    label = label_of(function, "fold")
    return _stateful("fold", Fold, (initial, function), label)


def _check_initial(kind: str, initial: Any) -> None:
    try:
        deepcopy(initial)
    except Exception as error:
        what = f"{kind}()'s first argument is copied for each run, and for each key, and"
        raise GraphError(f"{what} {safe_repr(initial)} cannot be: {error}") from error


def count() -> Recipe:
    """Count rows."""
    return _stateful("count", Count, (), "count")


def reduce(function: Any, every: int) -> Recipe:
    """Apply a function to lists of rows."""
    check_function("reduce()'s first argument", function)
    check_count("every", every)
    return _lists("reduce", function, every, label_of(function, "reduce"))


def batch(size: int) -> Recipe:
    """Make lists of rows."""
    check_count("a batch's size", size)
    return _lists("batch", list, size, "batch")


def to_arrow(size: int, schema: Any) -> Recipe:
    """Make Arrow batches of rows."""
    check_count("a batch's size", size)
    return _lists("to_arrow", batch_of(schema), size, "to_arrow")


def _lists(kind: str, function: Any, size: int, label: str) -> Recipe:
    make = partial(Reduction, function, size)
    return _objects(kind, make, label, f"{size:,} rows", marks_end=True)


def window(windows: Tumbling | Sliding | Session, function: Any, late: str) -> Recipe:
    """Apply a function to windows of rows."""
    if not isinstance(windows, Tumbling | Sliding | Session):
        raise GraphError(f"windows are Tumbling, Sliding or Session, not {safe_repr(windows)}")
    check_function("window()'s second argument", function)
    check_choice("late", late, ("drop", "side", "include"))
    label = "window" if function is itself else label_of(function, "window")
    if windows.by is not None:
        program: Any = Sessions
        args: tuple[Any, ...] = (windows, function, late)
        if not isinstance(windows, Session):
            bounds = Bounds(windows)
            program = Timed
            args = (partial(Fixed, windows, bounds, function, late),)
        return _stateful("window", program, args, label) | {
            "options": {
                "paired": True,
                "marks_time": True,
                "marks_end": True,
                "late_is_counted": late == "drop",
            },
            "detail": str(windows),
            "ports": ("out", "late") if late == "side" else ("out",),
        }
    if late != "drop":
        raise GraphError(f"late={late!r} is for windows by time, and {windows!r} are by count")
    if isinstance(windows, Session):  # for type checkers: it has a time
        raise AssertionError
    make = partial(ByCount, windows, function)
    return _objects("window", make, label, str(windows), marks_end=True)


def top_k(k: int, by: Any, every: int | None) -> Recipe:
    """Keep the largest rows."""
    check_count("k", k)
    check_function("top_k()'s second argument", by)
    if every is not None:
        check_count("every", every)
    make = partial(Top, k, by, every)
    return _objects("top_k", make, "top_k", f"{k:,} rows", marks_end=True)


def distinct(by: Any) -> Recipe:
    """Drop rows that were there before."""
    if by is not None:
        check_function("distinct()'s argument", by)
    return _objects("distinct", partial(Distinct, by), "distinct", paired=False)


def watermarks(by: Any, lag: Any, every: int) -> Recipe:
    """Say how far event time has come."""
    check_function("watermarks()'s first argument", by)
    check_lag(lag)
    check_count("every", every)
    return _stateful("watermarks", Clock, (by, lag, every), "watermarks")


def _objects(
    kind: str, make: Callable[..., Any], label: str, detail: str = "", **options: Any
) -> Recipe:
    options = {"paired": True, **options}
    return _stateful(kind, Objects, (make,), label) | {"options": options, "detail": detail}


def _stateful(kind: str, program: Any, args: tuple[Any, ...], label: str) -> Recipe:
    return {"kind": kind, "program": program, "args": args, "label": label, "stateful": True}


def stateful(cls: Any, args: Any, kwargs: Any, sides: Iterable[str], *, keyed: bool) -> Recipe:
    """Hand rows to an object of a user's class, or to one for each key."""
    if not isinstance(cls, type):
        what = f"stateful() takes a class, of which it makes objects, not {safe_repr(cls)}"
        raise GraphError(what)
    if keyed and not hasattr(cls, "receive"):
        raise GraphError(f"{cls.__qualname__} has no method `receive`")
    timed = hasattr(cls, "on_watermark")
    return _receiver("stateful", cls, partial(cls, *args, **kwargs), sides, keyed) | {
        "stateful": True,
        "options": {
            "marks_time": timed,
            "marks_end": hasattr(cls, "on_final"),
            "drops": timed and hasattr(cls, "is_idle"),
        },
    }


def stateless(what: Any, args: Any, kwargs: Any, sides: Iterable[str]) -> Recipe:
    """Hand rows to a function, to an object, or to an object that a run makes of a class."""
    for hook in ("on_watermark", "on_final"):
        if hasattr(what, hook):
            raise GraphError(f"{safe_repr(what)} has a method `{hook}`, so it is for stateful()")
    if isinstance(what, type):
        return _receiver("stateless", what, partial(what, *args, **kwargs), sides)
    if args or kwargs:
        raise GraphError(f"arguments for it need a class, and {safe_repr(what)} is none")
    if hasattr(what, "receive") or hasattr(what, "receive_many"):
        return _receiver("stateless", what, lambda: what, sides)
    check_function("stateless()'s argument", what, may_yield=True)
    label = label_of(what, "stateless")
    return flat_map(what, sides) | {"kind": "stateless", "label": label}


def flat_map(function: Any, sides: Iterable[str]) -> Recipe:
    """Call a function that gives any number of outputs."""
    check_function("flat_map()'s argument", function, may_yield=True)
    return {
        "kind": "flat_map",
        "program": FlatMap,
        "args": (function,),
        "label": label_of(function, "flat_map"),
        "ports": ("out", *check_sides(sides)),
    }


def _receiver(
    kind: str, what: Any, make: Callable[..., Any], sides: Iterable[str], keyed: bool = False
) -> Recipe:
    by_row = Objects if hasattr(what, "receive") else None
    in_lots = hasattr(what, "receive_many") and not keyed
    if by_row is None and not in_lots:
        raise GraphError(f"{safe_repr(what)} has no method `receive`")
    check_receiver(what)
    return {
        "kind": kind,
        "program": Lots if in_lots else by_row,
        "program_by_row": by_row,
        "args": (make,),
        "options": {"kind": "stateless"},
        "label": label_of(what, kind),
        "ports": ("out", *check_sides(sides)),
    }
