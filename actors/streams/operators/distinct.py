"""The first of equal rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from callboard.rows.instants import instant_of
from callboard.streams.checks import check_function
from callboard.streams.operators.receivers import objects
from callboard.streams.planning.operator import Operator
from callboard.streams.programs.program import Answering
from callboard.streams.programs.rows.tables import check_key


def distinct(by: Any) -> Operator:
    """Drop rows that were there before."""
    if by is not None:
        check_function("distinct()'s argument", by)
    return objects("distinct", partial(_Distinct, by), paired=False)


class _Distinct:
    """The first of all rows that are equal, or whose `by` is."""

    def __init__(self, by: Callable[[Any], Any] | None) -> None:
        self.by = None if by is None else Answering(by)
        self.seen: set[Any] = set()

    def receive(self, row: Any) -> Sequence[Any] | None:
        value = instant_of(row if self.by is None else self.by(row))
        if value in self.seen:
            return None
        check_key("what distinct() goes by", value)
        self.seen.add(value)
        return [row]

    def snapshot(self) -> Any:
        return tuple(self.seen)

    def restore(self, state: Any) -> None:
        self.seen = set(state)
