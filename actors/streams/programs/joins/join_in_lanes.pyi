from collections.abc import Callable
from typing import Any

from typing_extensions import disjoint_base

from callboard.streams.programs.joins.finder import Finder
from callboard.streams.programs.joins.join import Join, JoinRows
from callboard.streams.programs.joins.lot_finder import LotFinder
from callboard.streams.programs.program import Program

class JoinOrder(JoinRows): ...

@disjoint_base
class LanePrograms(Program):
    def __init__(
        self,
        name: str,
        *,
        finder: Callable[[int, int], Finder | LotFinder],
        lanes: int,
        releases_gil: bool,
        **options: Any,
    ) -> None: ...

class JoinLanes(LanePrograms): ...
class JoinEnd(Join): ...

def number_of(each: Any) -> int: ...
