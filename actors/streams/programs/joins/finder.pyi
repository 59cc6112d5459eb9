from collections.abc import Callable, Sequence
from typing import Any

from typing_extensions import disjoint_base

from callboard.streams.programs.joins.comparisons import Comparison
from callboard.streams.programs.joins.kept import WindowRule

@disjoint_base
class Finder:
    def __init__(self, rule: WindowRule, lane: int, lanes: int) -> None: ...

class PairFinder(Finder):
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
