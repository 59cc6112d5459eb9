from collections.abc import Callable
from typing import Any

from callboard.streams._program import Program

class Map(Program):
    def __init__(self, name: str, function: Callable[[Any], Any], **options: Any) -> None: ...

class Filter(Program):
    def __init__(self, name: str, function: Callable[[Any], Any], **options: Any) -> None: ...

class FlatMap(Program):
    def __init__(self, name: str, function: Callable[[Any], Any], **options: Any) -> None: ...

class Branch(Program):
    def __init__(self, name: str, functions: list[Callable[[Any], Any]], **options: Any) -> None: ...

class Every(Program):
    def __init__(self, name: str, every: int, **options: Any) -> None: ...

class Fraction(Program):
    def __init__(self, name: str, fraction: float, seed: int, **options: Any) -> None: ...

class Same(Program):
    rate: float | None
    def __init__(self, name: str, rate: float | None = None, **options: Any) -> None: ...

class Number(Program): ...
