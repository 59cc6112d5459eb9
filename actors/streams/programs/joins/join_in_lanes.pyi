from collections.abc import Callable
from typing import Any

from typing_extensions import disjoint_base

from callboard.streams.programs.joins.join import Join, JoinRows
from callboard.streams.programs.joins.join_index import JoinIndex
from callboard.streams.programs.program import Program

class JoinOrder(JoinRows): ...

@disjoint_base
class LanePrograms(Program):
    def __init__(
        self,
        name: str,
        *,
        index: Callable[[int, int], JoinIndex],
        lanes: int,
        releases_gil: bool,
        **options: Any,
    ) -> None: ...

class JoinLanes(LanePrograms): ...
class JoinEnd(Join): ...
