"""What brings streams of Arrow batches together by their rows' time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from callboard.core.text import safe_repr
from callboard.streams.checks import MOST, check_choice, check_count, check_function, check_name
from callboard.streams.errors import GraphError
from callboard.streams.operators.joining import (
    idle_said,
    idle_seconds,
    names_said,
    of_each,
    window_said,
)
from callboard.streams.planning.operator import Operator
from callboard.streams.programs.joins.predicates import Band, Predicate, name_of
from callboard.streams.programs.windows.window import lag_of


def merge_batches(by: Any, streams: int, n: int, lag: Any, late: str, idle_after: Any) -> Operator:
    """Put the rows of the batches of several streams into one order."""
    from callboard.streams.programs.columns.batches_in_time import MergeBatches

    names = _columns("merge_batches", by, streams)
    said = f"by {names_said(names)}"
    return _operator("merge_batches", MergeBatches, names, n, {}, lag, late, idle_after, said)


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
    lag: Any,
    late: str,
    idle_after: Any,
) -> Operator:
    """Compare the rows of the batches of two streams within a window."""
    from callboard.streams.programs.joins.join_batches import KINDS, JoinBatches

    names = _columns("join_batches", by, 2)
    window = window_said("join_batches", within, rows)
    lengths = {} if within is None else {"within": within}
    check_choice("how", how, KINDS)
    check_choice("rule", rule, ("strict", "three-step"))
    if not isinstance(suffix, str):
        raise GraphError(f"suffix is a string, not {safe_repr(suffix)}")
    way = _way(where, rows)
    program = partial(
        JoinBatches,
        most=rows,
        three_step=rule == "three-step",
        terms=way.terms,
        masks=way.masks,
        how=how,
        by_cells=way.by_cells,
        suffix=suffix,
        schemas=_schemas(schemas),
    )
    said = [how, f"{window} by {names_said(names)}", "" if rule == "strict" else rule]
    said += [repr(where) if way.terms else "", way.said]
    detail = ", ".join(filter(None, said))
    operator = _operator("join_batches", program, names, n, lengths, lag, late, idle_after, detail)
    if schemas is not None:
        _try("join_batches", operator)
    return operator


class _Way(NamedTuple):
    """How partners are found."""

    said: str
    terms: list[tuple[tuple[str, str], Any]] = []  # noqa: RUF012 - never changed
    masks: tuple[Callable[..., Any], ...] | None = None
    by_cells: bool = False


def _way(where: Any, rows: int | None) -> _Way:
    from callboard.streams.programs.joins.join_batches import MOST_TERMS, prefers_cells

    if where is None:
        return _Way("every pair")
    if not isinstance(where, Predicate):
        masks = where if isinstance(where, tuple) else (where, where)
        if len(masks) != 2:
            raise GraphError(
                f"where= takes a function, or one for each of 2 streams, not {safe_repr(where)}"
            )
        for mask in masks:
            check_function("where", mask)
        return _Way("found by masks", masks=masks)
    terms: list[tuple[tuple[str, str], Any]] = []
    for term in where:
        for column in (term.left, term.right):
            if not isinstance(column, str):
                raise GraphError(
                    f"join_batches() compares columns by their names, not {name_of(column)}"
                )
        distance = term.distance if isinstance(term, Band) else None
        terms.append(((str(term.left), str(term.right)), distance))
    if len(terms) > MOST_TERMS:
        raise GraphError(f"join_batches() compares up to {MOST_TERMS} columns, not {len(terms)}")
    if rows is None or prefers_cells(rows):
        return _Way("found by cells", terms, by_cells=True)
    return _Way("each pair compared", terms)


def _operator(
    kind: str,
    program: Any,
    names: tuple[str, ...],
    n: int,
    lengths: dict[str, Any],
    lag: Any,
    late: str,
    idle_after: Any,
    detail: str,
) -> Operator:
    size = check_count("n", n, most=MOST)
    lag = lag_of(lag)
    if lag is not None:
        lengths = {**lengths, "lag": lag}
    check_choice("late", late, ("drop", "side"))
    side = late == "side"
    silence = idle_seconds(idle_after)
    program = partial(
        program,
        by=names,
        lengths=lengths,
        size=size,
        idle_after=silence,
        late_is_counted=not side,
    )
    return Operator(
        kind=kind,
        program=program,
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
            "schemas= has the pyarrow.Schema of each of 2 streams, or None for one that is not "
            f"known, not {safe_repr(schemas)}"
        )
    return pair[0], pair[1]


def _try(call: str, operator: Operator) -> None:
    """Make the program once, which looks at what is known of its columns."""
    try:
        operator.make(call, [0, 0], None)
    except (TypeError, ValueError) as error:
        raise GraphError(f"schemas= of {call}(): {error}") from error


def _columns(call: str, by: Any, streams: int) -> tuple[str, ...]:
    names = of_each(call, by, streams)
    for name in names:
        check_name(f"by= of {call}()", name)
    return names
