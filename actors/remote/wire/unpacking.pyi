from collections.abc import Callable
from typing import Any, final

DEEPEST: int

@final
class Unpacking:
    @property
    def value(self) -> Any: ...
    def __init__(
        self,
        data: bytes | memoryview,
        plain: Callable[[int, bytes], Any],
        compose: Callable[[int, list[Any]], Any],
        most: int,
        is_trusted: bool,
    ) -> None: ...
    def advance(self, work: int) -> bool: ...
