from collections.abc import Callable
from typing import Any

from typing_extensions import disjoint_base

from callboard.streams.programs.program import Program

@disjoint_base
class Map(Program):
    def __init__(self, name: str, function: Callable[[Any], Any], **options: Any) -> None: ...

@disjoint_base
class Filter(Program):
    def __init__(self, name: str, function: Callable[[Any], Any], **options: Any) -> None: ...

@disjoint_base
class FlatMap(Program):
    def __init__(self, name: str, function: Callable[[Any], Any], **options: Any) -> None: ...

@disjoint_base
class Branch(Program):
    def __init__(
        self, name: str, functions: list[Callable[[Any], Any]], **options: Any
    ) -> None: ...

@disjoint_base
class Every(Program):
    def __init__(self, name: str, every: int, **options: Any) -> None: ...

@disjoint_base
class Fraction(Program):
    def __init__(self, name: str, fraction: float, seed: int, **options: Any) -> None: ...

class Same(Program):
    def __init__(self, name: str, rate: float | None = None, **options: Any) -> None: ...

class Number(Program): ...
