from collections.abc import Callable
from typing import Any

from typing_extensions import disjoint_base

class Known: ...
class OrderedRows: ...
class Matches: ...

@disjoint_base
class LotFinder: ...

class ColumnFinder(LotFinder):
    def __init__(
        self, lane: int, lanes: int, *, most: int | None, three_step: bool, by_buckets: bool
    ) -> None: ...

class MaskFinder(LotFinder):
    def __init__(
        self, lane: int, lanes: int, *, masks: tuple[Callable[[dict[str, Any], Any], Any], ...]
    ) -> None: ...
