from collections.abc import Callable
from typing import Any

from callboard.streams._program import Program

class Merge(Program):
    def __init__(self, name: str, drops: list[int], leaves: int | None, **options: Any) -> None: ...

class Union(Merge): ...
class Zip(Merge): ...

class ByTime(Merge):
    def __init__(
        self,
        name: str,
        drops: list[int],
        leaves: int | None,
        time_of: Callable[[Any], Any],
        **options: Any,
    ) -> None: ...
