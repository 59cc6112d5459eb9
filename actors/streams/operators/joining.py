"""Joins and merges of streams by the time of their rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from callboard.core import checks
from callboard.core.text import safe_repr
from callboard.streams.checks import (
    MOST_PARTITIONS,
    check_choice,
    check_count,
    check_function,
)
from callboard.streams.errors import GraphError
from callboard.streams.native import NativeIndex, NativePredicate
from callboard.streams.planning.operator import Operator
from callboard.streams.programs.joins.comparisons import Comparison
from callboard.streams.programs.joins.join import Join
from callboard.streams.programs.joins.join_asof import JoinAsof
from callboard.streams.programs.joins.join_in_lanes import JoinEnd, JoinLanes, JoinOrder
from callboard.streams.programs.joins.join_index import NumberIndex, PairIndex, RowIndex
from callboard.streams.programs.joins.predicates import (
    Column,
    Predicate,
    check_column,
    check_distance,
    name_of,
    reader_of,
)
from callboard.streams.programs.joins.window_rows import WindowRule
from callboard.streams.programs.merging.time_order import MergeInTime
from callboard.streams.programs.program import check_answer
from callboard.streams.programs.windows.window import delay_of

How = Literal["inner", "left", "right", "outer", "semi", "anti"]
Rule = Literal["strict", "three-step"]
LateRow = Literal["drop", "side"]
Nearest = Literal["before", "after", "either"]

# The time that rows of streams are ordered by: one function or column for all, or one for each.
By = Column | tuple[Column, ...]


def union(by: Any, streams: int) -> Operator:
    """Put the rows of several streams into one order; late rows go out nevertheless."""
    return _merge("union", by, streams, keeps_late=True)


def merge(by: Any, streams: int, delay_threshold: Any, late: str, idle_timeout: Any) -> Operator:
    """Put the rows of several streams into one order."""
    check_choice("late", late, ("drop", "side"))
    side = late == "side"
    options = {
        "delay_threshold": delay_of(delay_threshold),
        "idle_timeout": idle_seconds(idle_timeout),
    }
    return _merge("merge", by, streams, side, **options, late_is_counted=not side)


def _merge(kind: str, by: Any, streams: int, side: bool = False, **options: Any) -> Operator:
    columns = _columns(kind, by, streams)
    times_of = [reader_of(column) for column in columns]
    return Operator(
        kind=kind,
        program=partial(MergeInTime, times_of=times_of, **options),
        joins=True,
        detail=", ".join([f"by {names_said(columns)}", *idle_said(options.get("idle_timeout"))]),
        ports=("out", "late") if side else ("out",),
    )


def join(
    by: Any,
    within: Any,
    rows: int | None,
    where: Any,
    *,
    combine: Any,
    how: str,
    rule: str,
    delay_threshold: Any,
    late: str,
    idle_timeout: Any,
    lanes: int,
) -> Operator:
    """Compare the rows of two streams within a window."""
    columns = _columns("join", by, 2)
    within = lengths_given("join", within)
    window = window_said("join", within, rows)
    check_choice("how", how, ("inner", "left", "right", "outer", "semi", "anti"))
    check_choice("rule", rule, ("strict", "three-step"))
    check_choice("late", late, ("drop", "side"))
    if combine is not None:
        check_function("combine", combine)
        if how in ("semi", "anti"):
            raise GraphError(f"how={how!r} gives rows of the left stream alone: it has no combine=")
    keys, near, comparisons, test, found = _compared(where)
    once = how in ("semi", "anti")
    window_rule = WindowRule(within, rows, rule == "three-step")
    index: Callable[[int, int], RowIndex]
    is_native = isinstance(where, NativePredicate)
    if is_native:
        index = partial(NativeIndex, window_rule, predicate=where, once=once)
    elif keys is None and NumberIndex.can_find(within, comparisons):
        index = partial(NumberIndex, window_rule, comparisons=comparisons, once=once)
        found = "numbers found by buckets"
    else:
        by_key = keys is not None
        options = {"by_key": by_key, "comparisons": comparisons, "test": test, "once": once}
        index = partial(PairIndex, window_rule, **options)
    silence = idle_seconds(idle_timeout)
    said = [how, f"{window} by {names_said(columns)}", *idle_said(silence)]
    if rule != "strict":
        said.append(rule)
    if isinstance(where, Predicate):
        said.append(repr(where))
    said.append(found)
    check_count("lanes", lanes, 1, MOST_PARTITIONS)
    order = {
        "times_of": [reader_of(column) for column in columns],
        "delay_threshold": delay_of(delay_threshold),
        "idle_timeout": silence,
        "rule": window_rule,
        "keys": keys,
        "near": near,
        "comparisons": comparisons,
    }
    ends = {**order, "combine": combine, "how": how, "late_is_counted": late == "drop"}
    ahead: tuple[Any, ...] = ()
    # The comparisons by a function are separate, for worker processes. Where one partner is enough,
    # the program that knows which rows have one finds it sooner.
    if lanes == 1 and (test is None or once):
        program: Any = partial(Join, index=index, **ends)
    else:
        program = partial(JoinEnd, **{**ends, "idle_timeout": None})
        ahead = (
            ("in order", partial(JoinOrder, **order)),
            ("in lanes", partial(JoinLanes, index=index, lanes=lanes, releases_gil=is_native)),
        )
        if lanes > 1:
            said.append(f"{lanes} lanes")
    return Operator(
        kind="join",
        program=program,
        ahead=ahead,
        joins=True,
        detail=", ".join(said),
        ports=("out", "late") if late == "side" else ("out",),
    )


def lengths_given(call: str, within: Any) -> Any:
    """Check `within` if it is a pair, and give both lengths one type: 0 fits all types."""
    if not isinstance(within, tuple):
        return within
    if len(within) != 2:
        raise GraphError(
            f"within= of {call}() must be a length, or a pair of them, (before, after), "
            f"got {safe_repr(within)}"
        )
    for at, length in enumerate(within):
        check_distance(f"within[{at}]", length)
    before, after = within
    if type(before) is int and before == 0:
        before = after - after
    if type(after) is int and after == 0:
        after = before - before
    return before, after


def join_asof(
    by: Any,
    where: Any,
    nearest: str,
    tolerance: Any,
    *,
    combine: Any,
    delay_threshold: Any,
    late: str,
    idle_timeout: Any,
) -> Operator:
    """Find for each row of a stream the one of another that is nearest in time."""
    columns = _columns("join_asof", by, 2)
    check_choice("nearest", nearest, ("before", "after", "either"))
    check_choice("late", late, ("drop", "side"))
    if tolerance is not None:
        check_distance("tolerance", tolerance)
    if combine is not None:
        check_function("combine", combine)
    equals = list(where) if isinstance(where, Predicate) else []
    if where is not None and not (equals and all(term._comparison is None for term in equals)):
        raise GraphError(
            "where= of join_asof() must be one Equal, or several joined by &, got "
            f"{safe_repr(where)}"
        )
    keys = None
    if equals:
        keys = tuple(_together(side) for side in zip(*(t._readers for t in equals), strict=True))
    silence = idle_seconds(idle_timeout)
    direction = {"before": "the latest before", "after": "the first after", "either": "the nearest"}
    said = [f"{direction[nearest]} by {names_said(columns)}"]
    said += [] if tolerance is None else [f"within {safe_repr(tolerance)}"]
    said += [repr(where)] if equals else []
    program = partial(
        JoinAsof,
        times_of=[reader_of(column) for column in columns],
        delay_threshold=delay_of(delay_threshold),
        idle_timeout=silence,
        rule=WindowRule(tolerance, None, False),
        keys=keys,
        combine=combine,
        nearest=nearest,
        late_is_counted=late == "drop",
    )
    return Operator(
        kind="join_asof",
        program=program,
        joins=True,
        detail=", ".join([*said, *idle_said(silence)]),
        ports=("out", "late") if late == "side" else ("out",),
    )


def window_said(call: str, within: Any, rows: Any) -> str:
    """Check the arguments that say which rows are in a window, and describe them. Raises
    GraphError.
    """
    if (within is None) == (rows is None):
        raise GraphError(
            f"{call}() expects either within=, a length of time, or rows=, a number of rows, "
            f"got within={safe_repr(within)} and rows={safe_repr(rows)}"
        )
    if isinstance(within, tuple):
        return f"within {safe_repr(within[0])} before and {safe_repr(within[1])} after"
    if rows is None:
        check_distance("within", within)
        return f"within {safe_repr(within)}"
    check_count("rows", rows)
    return f"the last {rows:,} rows"


def _compared(where: Any) -> tuple[Any, list[list[Any]], list[Comparison], Any, str]:
    """Return the values to compare, and how partners are found.

    That is the functions of keys, those of what is compared besides, the comparisons, and the test.
    """
    nothing: list[list[Any]] = [[], []]
    if where is None:
        return None, nothing, [], None, "every pair"
    if isinstance(where, NativePredicate):
        if type(where) is NativePredicate:
            raise GraphError("where= takes a NativePredicate that overrides matches(), in Cython")
        return None, nothing, [], None, f"each pair compared by {type(where).__name__}"
    if not isinstance(where, Predicate):
        if isinstance(where, type):
            raise GraphError(f"where= expects an object that compares, got the class {where!r}")
        check_function("where", where)
        return None, nothing, [], where, "each pair compared"
    equals = [term for term in where if term._comparison is None]
    others = [term for term in where if term._comparison is not None]
    keys = None
    if equals:
        keys = tuple(_together(side) for side in zip(*(t._readers for t in equals), strict=True))
    near = [[term._readers[side] for term in others] for side in range(2)]
    comparisons = [term._comparison for term in others if term._comparison is not None]
    names = ", ".join(term._named() for term in equals)
    return keys, near, comparisons, None, f"found by {names}" if equals else "each pair compared"


_PLAIN = (int, str, bytes, bool)  # no such value is an answer that nobody awaits


def _together(readers: tuple[Callable[[Any], Any], ...]) -> Callable[[Any], Any]:
    """Make one function of several, which gives a tuple of their results."""
    if len(readers) == 1:
        return readers[0]

    def together(row: Any) -> tuple[Any, ...]:
        values = tuple([read(row) for read in readers])
        for value in values:
            if type(value) not in _PLAIN:
                check_answer(value)
        return values

    return together


def of_each(call: str, by: Any, streams: int) -> tuple[Any, ...]:
    """Return the `by` of each stream: one for all, or a tuple. Raises GraphError."""
    columns = by if isinstance(by, tuple) else (by,) * streams
    if len(columns) != streams:
        raise GraphError(
            f"by= of {call}() must be one value for all streams, or a tuple of "
            f"{streams} values, got {safe_repr(by)}"
        )
    return columns


def _columns(call: str, by: Any, streams: int) -> tuple[Any, ...]:
    columns = of_each(call, by, streams)
    for column in columns:
        check_column(f"by= of {call}()", column)
    return columns


def names_said(columns: tuple[Any, ...]) -> str:
    """Name columns, or the one of all."""
    names = [name_of(column) for column in columns]
    return names[0] if len(set(names)) == 1 else ", ".join(names)


def idle_seconds(value: Any) -> float | None:
    """Check `idle_timeout`. Raises GraphError."""
    return (
        None
        if value is None
        else checks.seconds("idle_timeout", value, zero=False, error=GraphError)
    )


def idle_said(silence: float | None) -> list[str]:
    """Say when a stream is idle, if it may be."""
    return [] if silence is None else [f"idle after {silence:g} s"]
