from collections.abc import Callable, Sequence
from typing import Any, final

from callboard.streams.programs.joins.comparisons import Comparison
from callboard.streams.programs.saved import Columns

@final
class WindowRow: ...

@final
class RowReader:
    def __init__(
        self,
        keys: tuple[Callable[[Any], Any], Callable[[Any], Any]] | None,
        near: Sequence[Sequence[Callable[[Any], Any]]],
        comparisons: list[Comparison],
    ) -> None: ...

@final
class SavedRows:
    def __init__(self, columns: Sequence[list[list[Any]]] = ()) -> None: ...
    def columns(self) -> Columns: ...

@final
class WindowRule:
    within: Any
    lengths: tuple[Any, Any] | None
    most: int
    three_step: bool
    is_strict: bool
    def __init__(self, within: Any, most: int | None, three_step: bool) -> None: ...
