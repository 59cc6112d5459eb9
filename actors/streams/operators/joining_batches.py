"""What brings streams of Arrow batches together by their rows' time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from callboard.core.text import safe_repr
from callboard.streams.checks import MOST, check_choice, check_count, check_function, check_name
from callboard.streams.errors import GraphError
from callboard.streams.operators.joining import window_said
from callboard.streams.planning.operator import Operator
from callboard.streams.programs.predicates import Band, Predicate, name_of
from callboard.streams.programs.windows import check_lag


def merge_batches(by: Any, streams: int, n: int, lag: Any, late: str) -> Operator:
    """Put the rows of the batches of several streams into one order."""
    from callboard.streams.programs.batches_in_time import MergeBatches

    names = _columns("merge_batches", by, streams)
    said = f"by {_said(names)}"
    return _operator("merge_batches", MergeBatches, names, n, {}, lag, late, said)


def join_batches(
    by: Any,
    within: Any,
    rows: int | None,
    where: Any,
    how: str,
    rule: str,
    suffix: str,
    n: int,
    lag: Any,
    late: str,
) -> Operator:
    """Compare the rows of the batches of two streams within a window."""
    from callboard.streams.programs.join_batches import KINDS, JoinBatches

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
    )
    said = [how, f"{window} by {_said(names)}", "" if rule == "strict" else rule]
    said += [repr(where) if way.terms else "", way.said]
    detail = ", ".join(filter(None, said))
    return _operator("join_batches", program, names, n, lengths, lag, late, detail)


class _Way(NamedTuple):
    """How partners are found."""

    said: str
    terms: list[tuple[tuple[str, str], Any]] = []  # noqa: RUF012 - never changed
    masks: tuple[Callable[..., Any], ...] | None = None
    by_cells: bool = False


def _way(where: Any, rows: int | None) -> _Way:
    from callboard.streams.programs.join_batches import MOST_TERMS, prefers_cells

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
    detail: str,
) -> Operator:
    size = check_count("n", n, most=MOST)
    check_lag(lag)
    if lag != lag - lag:
        lengths = {**lengths, "lag": lag}
    check_choice("late", late, ("drop", "side"))
    side = late == "side"
    return Operator(
        kind=kind,
        program=partial(program, by=names, lengths=lengths, size=size, late_is_counted=not side),
        joins=True,
        detail=f"{detail}, batches of {size:,} rows",
        ports=("out", "late") if side else ("out",),
    )


def _columns(kind: str, by: Any, streams: int) -> tuple[str, ...]:
    names = by if isinstance(by, tuple) else (by,) * streams
    if len(names) != streams:
        raise GraphError(
            f"by= of {kind}() is for all streams, or a tuple with one for each of {streams}, "
            f"not {safe_repr(by)}"
        )
    for name in names:
        check_name(f"by= of {kind}()", name)
    return names


def _said(names: tuple[str, ...]) -> str:
    return ", ".join(map(repr, names[:1] if len(set(names)) == 1 else names))
