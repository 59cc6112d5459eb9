from collections.abc import Callable
from typing import Any

from typing_extensions import disjoint_base

from callboard.streams.programs.joins.native_finder import NativePredicate
from callboard.streams.programs.program import Program

__all__ = ["NativeOperator", "NativePredicate", "NativeProgram"]

@disjoint_base
class NativeOperator:
    kind: str

@disjoint_base
class NativeProgram(Program):
    def __init__(
        self, name: str, make: Callable[[], NativeOperator], partitions: int = 0, **options: Any
    ) -> None: ...
