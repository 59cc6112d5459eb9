"""The most frequent keys."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

from callboard.frequency.results import Frequent
from callboard.frequency.space_saving import SpaceSaving, restored
from callboard.streams.checks import check_count, check_function
from callboard.streams.errors import GraphError
from callboard.streams.operators.receivers import objects
from callboard.streams.planning.operator import Operator
from callboard.streams.programs.program import Answering
from callboard.streams.programs.rows.tables import check_key


def frequent(by: Any, epsilon: float, support: float | None, every: int | None) -> Operator:
    """Count keys in bounded memory."""
    check_function("frequent()'s first argument", by)
    if every is not None:
        check_count("every", every)
    try:
        summary = SpaceSaving(epsilon)
        support = summary.epsilon if support is None else float(support)
        summary.frequent(support)
    except (TypeError, ValueError) as error:
        raise GraphError(str(error)) from None
    make = partial(_Frequent, by, epsilon, support, every)
    return objects("frequent", make, detail=f"above {support:g}", marks_end=True)


class _Frequent:
    """The keys that are more than a fraction of all rows.

    At the end they are given again only if rows have come since.
    """

    BATCH = 256

    def __init__(
        self, by: Callable[[Any], Any], epsilon: float, support: float, every: int | None
    ) -> None:
        self.by, self.support, self.every = Answering(by), support, every
        self.count = 0
        self.summary = SpaceSaving(epsilon)
        self.waiting: list[Hashable] = []  # counted together, which is faster

    def receive(self, row: Any) -> Sequence[Frequent] | None:
        key = self.by(row)
        hash(key)
        check_key("what frequent() counts", key)
        self.waiting.append(key)
        self.count += 1
        if self.every and self.count % self.every == 0:
            return [self.frequent()]
        if len(self.waiting) == self.BATCH:
            self.add_waiting()
        return None

    def on_final(self) -> Sequence[Frequent]:
        return () if self.every and self.count % self.every == 0 else [self.frequent()]

    def frequent(self) -> Frequent:
        self.add_waiting()
        return self.summary.frequent(self.support)

    def add_waiting(self) -> None:
        waiting, self.waiting = self.waiting, []
        self.summary.update(waiting)

    def snapshot(self) -> Any:
        return [self.count, self.waiting, self.summary.__reduce__()[1][1:]]

    def restore(self, state: Any) -> None:
        self.count, self.waiting, summary = state
        if summary[0] != self.summary.epsilon:
            raise ValueError(f"its epsilon was {summary[0]}, and is {self.summary.epsilon}")
        self.summary = restored(SpaceSaving, *summary)
