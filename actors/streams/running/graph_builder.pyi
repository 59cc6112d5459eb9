from collections.abc import Sequence
from typing import final

from callboard.streams.programs.program import Program
from callboard.streams.running.flow import GraphFlow

# Its number in the plan, and for each input where it comes from.
Member = tuple[int, Program, Sequence[tuple[int | None, int]]]

LONGEST_CHAIN: int

@final
class GraphBuilder:
    def __init__(self, graph: GraphFlow) -> None: ...
    def add(
        self,
        number: int,
        program: Program,
        sources: Sequence[tuple[int | None, int]],
        runs_on: str,
        partitions: int,
        most_lanes: int,
        pool: int = 0,
    ) -> None: ...
    def add_fused(self, members: Sequence[Member], runs_on: str, pool: int) -> None: ...
    def add_chain(
        self, members: Sequence[Member], runs_on: str, most_lanes: int, pool: int = 0
    ) -> None: ...
    def add_called(self, members: Sequence[Member], keeps_interpreter: bool) -> None: ...
    def connect(self) -> None: ...
