from collections.abc import Callable
from typing import Any, final

from typing_extensions import disjoint_base

from callboard.streams.programs.joins.join_index import RowIndex
from callboard.streams.programs.joins.window_rows import WindowRule
from callboard.streams.programs.program import Program

__all__ = ["NativeOperator", "NativePredicate"]

@disjoint_base
class NativeOperator:
    kind: str

@disjoint_base
class NativeProgram(Program):
    def __init__(
        self, name: str, make: Callable[[], NativeOperator], partitions: int = 0, **options: Any
    ) -> None: ...

@disjoint_base
class NativePredicate: ...

@final
class NativeIndex(RowIndex):
    def __init__(
        self,
        rule: WindowRule,
        lane: int,
        lanes: int,
        *,
        predicate: NativePredicate,
        once: bool,
    ) -> None: ...
