from collections.abc import Callable
from typing import Any

from callboard.streams.programs.joins.finder import Finder
from callboard.streams.programs.joins.join import Join, JoinRows
from callboard.streams.programs.program import Program

class JoinOrder(JoinRows): ...

class JoinLanes(Program):
    def __init__(
        self,
        name: str,
        *,
        finder: Callable[[int, int], Finder],
        lanes: int,
        releases_gil: bool,
        **options: Any,
    ) -> None: ...

class JoinEnd(Join): ...

def number_of(each: Any) -> int: ...
