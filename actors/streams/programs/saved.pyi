from typing import Any, final

@final
class Columns:
    columns: list[list[Any]]
    piece: int
    def __init__(
        self, columns: list[list[Any]], plain: tuple[int, ...] = (), *, piece: int = 8192
    ) -> None: ...
    def can_wait(self) -> bool: ...
