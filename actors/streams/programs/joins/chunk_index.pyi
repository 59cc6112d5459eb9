from collections.abc import Callable
from typing import Any

from callboard.streams.programs.joins.join_index import JoinIndex

class Known: ...
class OrderedRows: ...
class Matches: ...

class ColumnIndex(JoinIndex):
    def __init__(
        self, lane: int, lanes: int, *, most: int | None, three_step: bool, by_buckets: bool
    ) -> None: ...

class MaskIndex(JoinIndex):
    def __init__(
        self, lane: int, lanes: int, *, masks: tuple[Callable[[dict[str, Any], Any], Any], ...]
    ) -> None: ...
