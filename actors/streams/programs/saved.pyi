from typing import Any, final

@final
class Columns:
    piece: int
    def __init__(
        self,
        columns: list[list[Any]],
        plain: tuple[int, ...] = (),
        *,
        piece: int = 8192,
        keys: bool = False,
        refs: int = 0,
        late: Late | None = None,
    ) -> None: ...
    def __len__(self) -> int: ...
    def can_wait(self) -> bool: ...
    def part(self, begin: int) -> list[list[Any]]: ...
    def let_go(self) -> None: ...

@final
class Late:
    def __init__(self, keys: list[Any], states: list[Any]) -> None: ...
