from collections.abc import Callable, Sequence
from typing import Any

from typing_extensions import disjoint_base

from callboard.streams.programs.joins.comparisons import Comparison
from callboard.streams.programs.joins.join_index import RowIndex
from callboard.streams.programs.joins.window_rows import WindowRule
from callboard.streams.programs.merging.time_order import InTime

@disjoint_base
class JoinRows(InTime):
    def __init__(
        self,
        name: str,
        drops: list[int],
        leaves: int | None,
        *,
        rule: WindowRule,
        keys: tuple[Callable[[Any], Any], Callable[[Any], Any]] | None,
        near: Sequence[Sequence[Callable[[Any], Any]]],
        comparisons: Sequence[Comparison],
        **options: Any,
    ) -> None: ...

@disjoint_base
class Join(JoinRows):
    def __init__(
        self,
        name: str,
        drops: list[int],
        leaves: int | None,
        *,
        combine: Callable[[Any, Any], Any] | None,
        how: str,
        index: Callable[[int, int], RowIndex] | None = None,
        **options: Any,
    ) -> None: ...
