from typing import Any, final

@final
class Columns:
    columns: list[list[Any]]
    def __init__(self, columns: list[list[Any]], plain: tuple[int, ...] = ()) -> None: ...
    def can_wait(self) -> bool: ...
