from collections.abc import Callable
from typing import Any

from callboard.streams._program import Program

class Table: ...

class Stateful(Program):
    def __init__(
        self,
        name: str,
        *,
        key: Callable[[Any], Any] | None = None,
        partitions: int = 1,
        marks_time: bool = False,
        marks_end: bool = False,
        kind: str = "stateful",
        **options: Any,
    ) -> None: ...
