from collections.abc import Callable
from typing import Any

from callboard.streams._program import Program

class Collect(Program):
    collected: list[Any]

class Call(Program):
    def __init__(
        self,
        name: str,
        function: Callable[[Any], Any],
        end: Callable[[], Any] | None = None,
        **options: Any,
    ) -> None: ...

class Hand(Program):
    def __init__(self, name: str, function: Callable[[list[Any]], Any], **options: Any) -> None: ...
