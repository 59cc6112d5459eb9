from collections.abc import Callable, Sequence
from typing import Any

from typing_extensions import disjoint_base

from callboard.streams.programs.joins.comparisons import Comparison
from callboard.streams.programs.joins.window_rows import WindowRule

@disjoint_base
class JoinIndex: ...

@disjoint_base
class RowIndex(JoinIndex):
    def __init__(self, rule: WindowRule, lane: int, lanes: int) -> None: ...

class PairIndex(RowIndex):
    def __init__(
        self,
        rule: WindowRule,
        lane: int,
        lanes: int,
        *,
        by_key: bool,
        comparisons: Sequence[Comparison],
        test: Callable[[Any, Any], object] | None,
        once: bool,
    ) -> None: ...

class NumberIndex(RowIndex):
    def __init__(
        self,
        rule: WindowRule,
        lane: int,
        lanes: int,
        *,
        comparisons: Sequence[Comparison],
        once: bool,
    ) -> None: ...
    @staticmethod
    def can_find(within: Any, comparisons: Sequence[Comparison]) -> bool: ...
