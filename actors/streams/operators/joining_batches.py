"""Joins of streams of Arrow batches by the time of their rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from callboard.core.text import safe_repr
from callboard.streams.checks import (
    MOST,
    MOST_PARTITIONS,
    check_choice,
    check_count,
    check_function,
    check_name,
)
from callboard.streams.errors import GraphError
from callboard.streams.operators.joining import (
    idle_said,
    idle_seconds,
    lengths_given,
    names_said,
    of_each,
    window_said,
)
from callboard.streams.planning.operator import Operator
from callboard.streams.programs.joins.predicates import Predicate, name_of
from callboard.streams.programs.windows.window import delay_of

if TYPE_CHECKING:
    from callboard.streams.programs.joins.join_index import JoinIndex


def merge_batches(
    by: Any, streams: int, n: int, delay_threshold: Any, late: str, idle_timeout: Any
) -> Operator:
    """Put the rows of the batches of several streams into one order."""
    from callboard.streams.programs.columns.batches_in_time import MergeBatches

    names = _columns("merge_batches", by, streams)
    said = f"by {names_said(names)}"
    return _operator(
        "merge_batches", MergeBatches, names, n, {}, delay_threshold, late, idle_timeout, said
    )


def join_batches(
    by: Any,
    within: Any,
    rows: int | None,
    where: Any,
    how: str,
    rule: str,
    suffix: str,
    schemas: Any,
    n: int,
    delay_threshold: Any,
    late: str,
    idle_timeout: Any,
    lanes: int,
) -> Operator:
    """Compare the rows of the batches of two streams within a window."""
    from callboard.streams.programs.joins.join_batches import KINDS, JoinBatches
    from callboard.streams.programs.joins.join_batches_in_lanes import (
        BatchJoinEnd,
        BatchJoinLanes,
        BatchJoinOrder,
    )

    names = _columns("join_batches", by, 2)
    within = lengths_given("join_batches", within)
    window = window_said("join_batches", within, rows)
    lengths = {} if within is None else {"within": within}
    if isinstance(within, tuple):
        lengths = {"within[0]": within[0], "within[1]": within[1]}
    check_choice("how", how, KINDS)
    check_choice("rule", rule, ("strict", "three-step"))
    if not isinstance(suffix, str):
        raise GraphError(f"suffix must be a string, got {safe_repr(suffix)}")
    most = None if rows is None else min(rows, 2**53)
    way = _way(where, most, rule == "three-step")
    options: dict[str, Any] = {
        "most": most,
        "three_step": rule == "three-step",
        "terms": way.terms,
        "masks": way.masks,
        "how": how,
        "by_buckets": way.by_buckets,
        "suffix": suffix,
    }
    first: dict[str, Any] = {"schemas": _schemas(schemas)}
    said = [how, f"{window} by {names_said(names)}", "" if rule == "strict" else rule]
    said += [repr(where) if way.terms else "", way.said]
    check_count("lanes", lanes, 1, MOST_PARTITIONS)
    program: Any = partial(JoinBatches, **options, **first)
    ahead: tuple[Any, ...] = ()
    if lanes > 1:
        program = partial(BatchJoinEnd, **options)
        in_lanes = partial(BatchJoinLanes, index=way.join_index, lanes=lanes, releases_gil=True)
        ahead = (partial(BatchJoinOrder, **options, **first), in_lanes)
        said.append(f"{lanes} lanes")
    detail = ", ".join(filter(None, said))
    operator = _operator(
        "join_batches",
        program,
        names,
        n,
        lengths,
        delay_threshold,
        late,
        idle_timeout,
        detail,
        ahead,
    )
    if schemas is not None:
        _try("join_batches", operator)
    return operator


class _Way(NamedTuple):
    """The method by which partners are found."""

    said: str
    join_index: Callable[[int, int], JoinIndex]
    """Makes the index of a lane, from its number and that of all lanes."""
    terms: list[tuple[tuple[str, str], Any]] = []  # noqa: RUF012 - never changed
    masks: tuple[Callable[..., Any], ...] | None = None
    by_buckets: bool = False


def _way(where: Any, most: int | None, three_step: bool) -> _Way:
    from callboard.streams.programs.joins.chunk_index import ColumnIndex, MaskIndex
    from callboard.streams.programs.joins.join_batches import MOST_TERMS, prefers_buckets

    window: dict[str, Any] = {"most": most, "three_step": three_step}
    plain = partial(ColumnIndex, **window, by_buckets=False)
    if where is None:
        return _Way("every pair", plain)
    if not isinstance(where, Predicate):
        masks = where if isinstance(where, tuple) else (where, where)
        if len(masks) != 2:
            raise GraphError(
                f"where= expects a function, or one for each of 2 streams, got {safe_repr(where)}"
            )
        for mask in masks:
            check_function("where", mask)
        return _Way("found by masks", partial(MaskIndex, masks=masks), masks=masks)
    terms: list[tuple[tuple[str, str], Any]] = []
    for term in where:
        for column in (term._left, term._right):
            if not isinstance(column, str):
                raise GraphError(
                    f"join_batches() compares columns by their names, got {name_of(column)}"
                )
        if term._comparison is not None and not term._comparison.can:
            raise GraphError(f"join_batches() does not compare columns by {term!r}")
        terms.append(((str(term._left), str(term._right)), term._comparison))
    if len(terms) > MOST_TERMS:
        raise GraphError(f"join_batches() compares up to {MOST_TERMS} columns, got {len(terms)}")
    if most is None or prefers_buckets(most):
        buckets = partial(ColumnIndex, **window, by_buckets=True)
        return _Way("found by buckets", buckets, terms, by_buckets=True)
    return _Way("each pair compared", plain, terms)


def _operator(
    kind: str,
    program: Any,
    names: tuple[str, ...],
    n: int,
    lengths: dict[str, Any],
    delay_threshold: Any,
    late: str,
    idle_timeout: Any,
    detail: str,
    ahead: tuple[Any, ...] = (),
) -> Operator:
    """Make the operator of a program; `ahead` puts rows into their order, and finds partners."""
    size = check_count("n", n, most=MOST)
    delay_threshold = delay_of(delay_threshold)
    if delay_threshold is not None:
        lengths = {**lengths, "delay_threshold": delay_threshold}
    check_choice("late", late, ("drop", "side"))
    side = late == "side"
    silence = idle_seconds(idle_timeout)
    options: dict[str, Any] = {"by": names, "lengths": lengths, "size": size}
    programs_ahead: tuple[tuple[str, Any], ...] = ()
    idleness: dict[str, Any] = {"idle_timeout": silence}
    if ahead:
        in_order, in_lanes = ahead
        in_order = partial(in_order, **options, **idleness)
        programs_ahead = (("in order", in_order), ("in lanes", in_lanes))
        idleness = {}
    return Operator(
        kind=kind,
        program=partial(program, **options, **idleness, late_is_counted=not side),
        ahead=programs_ahead,
        joins=True,
        detail=", ".join([detail, *idle_said(silence), f"batches of {size:,} rows"]),
        ports=("out", "late") if side else ("out",),
    )


def _schemas(schemas: Any) -> tuple[Any, Any]:
    if schemas is None:
        return None, None
    import pyarrow as pa

    pair = schemas if isinstance(schemas, tuple | list) else ()
    if len(pair) != 2 or not all(each is None or isinstance(each, pa.Schema) for each in pair):
        raise GraphError(
            "schemas= must have the pyarrow.Schema of each of 2 streams, or None for an unknown "
            f"one, got {safe_repr(schemas)}"
        )
    return pair[0], pair[1]


def _try(call: str, operator: Operator) -> None:
    """Make the program once, which checks the known columns."""
    make: Any = operator.ahead[0][1] if operator.ahead else operator.make
    try:
        make(call, [0, 0], None)
    except (TypeError, ValueError) as error:
        raise GraphError(f"schemas= of {call}(): {error}") from error


def _columns(call: str, by: Any, streams: int) -> tuple[str, ...]:
    names = of_each(call, by, streams)
    for name in names:
        check_name(f"by= of {call}()", name)
    return names
