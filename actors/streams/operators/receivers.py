"""Operators that pass rows to a function, or to objects of a user's or a built-in class."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from callboard.core.text import safe_repr
from callboard.streams.checks import check_function, check_receiver, check_sides
from callboard.streams.errors import GraphError
from callboard.streams.planning.operator import Operator, label_of
from callboard.streams.programs.rows.keyed import Chunks, Objects
from callboard.streams.programs.rows.stateless import FlatMap


def stateful(cls: Any, args: Any, kwargs: Any, sides: Iterable[str], *, keyed: bool) -> Operator:
    """Hand rows to an object of a class, or to one for each key."""
    if not isinstance(cls, type):
        what = f"stateful() expects a class to make objects of, got {safe_repr(cls)}"
        raise GraphError(what)
    if keyed and not hasattr(cls, "receive"):
        raise GraphError(f"{cls.__qualname__} has no method `receive`")
    timed = hasattr(cls, "on_watermark")
    drops = keyed and hasattr(cls, "is_idle")
    options = {
        "marks_time": timed or drops,
        "marks_end": hasattr(cls, "on_final"),
        "silent": not timed,
        "drops": drops,
        "skips": hasattr(cls, "take_skipped"),
    }
    if hasattr(cls, "_check_arguments"):  # of a built-in class: errors before the run
        cls._check_arguments(*args, **kwargs)
    make = partial(cls, *args, **kwargs)
    return _receiver("stateful", cls, make, sides, options, by_row_alone=keyed)


def stateless(what: Any, args: Any, kwargs: Any, sides: Iterable[str]) -> Operator:
    """Hand rows to a function, to an object, or to an object that a run makes of a class."""
    for hook in ("on_watermark", "on_final"):
        if hasattr(what, hook):
            raise GraphError(f"{safe_repr(what)} has a method `{hook}`, so it is for stateful()")
    options = {"kind": "stateless"}
    if isinstance(what, type):
        return _receiver("stateless", what, partial(what, *args, **kwargs), sides, options)
    if args or kwargs:
        raise GraphError(f"arguments need a class, and {safe_repr(what)} is not one")
    if hasattr(what, "receive") or hasattr(what, "receive_many"):
        return _receiver("stateless", what, lambda: what, sides, options)
    return flat_map(what, sides, "stateless")


def objects(
    kind: str,
    make: Callable[[], Any],
    *,
    label: str = "",
    detail: str = "",
    paired: bool = True,
    marks_end: bool = False,
) -> Operator:
    """Pass rows to the object from `make`. With keys and `paired`, outputs are (key, output)."""
    program = partial(Objects, make=make, paired=paired, marks_end=marks_end)
    return Operator(kind=kind, program=program, label=label, detail=detail, stateful=True)


def flat_map(function: Any, sides: Iterable[str], kind: str = "flat_map") -> Operator:
    """Call a function that gives any number of outputs."""
    check_function(f"{kind}()'s argument", function, may_yield=True)
    return Operator(
        kind=kind,
        program=partial(FlatMap, function=function),
        label=label_of(function, kind),
        ports=("out", *check_sides(sides)),
    )


def _receiver(
    kind: str,
    what: Any,
    make: Callable[[], Any],
    sides: Iterable[str],
    options: Any,
    *,
    by_row_alone: bool = False,
) -> Operator:
    by_row = partial(Objects, make=make, **options) if hasattr(what, "receive") else None
    in_chunks = hasattr(what, "receive_many") and not by_row_alone
    if by_row is None and not in_chunks:
        raise GraphError(f"{safe_repr(what)} has no method `receive`")
    check_receiver(what)
    return Operator(
        kind=kind,
        program=partial(Chunks, make=make, **options) if in_chunks else by_row,
        in_chunks=in_chunks,
        program_by_row=by_row,
        label=label_of(what, kind),
        ports=("out", *check_sides(sides)),
        stateful=kind == "stateful",
    )
