from collections.abc import Callable, Sequence
from typing import Any, final

from callboard.streams.programs.joins.comparisons import Comparison

@final
class Kept: ...

@final
class RowReader:
    def __init__(
        self,
        keys: tuple[Callable[[Any], Any], Callable[[Any], Any]] | None,
        near: Sequence[Sequence[Callable[[Any], Any]]],
        comparisons: list[Comparison],
    ) -> None: ...

@final
class WindowRule:
    within: Any
    lengths: tuple[Any, Any] | None
    most: int
    three_step: bool
    is_strict: bool
    def __init__(self, within: Any, most: int | None, three_step: bool) -> None: ...
