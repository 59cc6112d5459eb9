from collections.abc import Sequence
from typing import Any

from callboard.streams.programs.joins.comparisons import Comparison
from callboard.streams.programs.joins.finder import Finder
from callboard.streams.programs.joins.kept import WindowRule

class NumberFinder(Finder):
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
