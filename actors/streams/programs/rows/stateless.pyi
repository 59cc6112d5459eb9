from collections.abc import Callable
from typing import Any

from typing_extensions import disjoint_base

from callboard.streams.programs.program import Program

@disjoint_base
class Map(Program):
    def __init__(self, name: str, function: Callable[[Any], Any], **options: Any) -> None: ...

class Filter(Map): ...
class FlatMap(Map): ...

@disjoint_base
class Branch(Program):
    def __init__(
        self, name: str, functions: list[Callable[[Any], Any]], **options: Any
    ) -> None: ...

@disjoint_base
class Sample(Program):
    def __init__(
        self, name: str, every: int = 0, fraction: float = 0, seed: int = 0, **options: Any
    ) -> None: ...

class Paced(Program):
    def __init__(self, name: str, rate: float, **options: Any) -> None: ...

class Number(Program): ...
