from collections.abc import Sequence

from typing_extensions import disjoint_base

from callboard.scheduling.flow.heuristics import Heuristic
from callboard.streams.programs.program import Program

# Its number in the plan, and for each input where it comes from.
Member = tuple[int, Program, Sequence[tuple[int | None, int]]]

LONGEST_CHAIN: int

@disjoint_base
class GraphStages:
    window: int
    def __init__(
        self,
        heuristic: Heuristic,
        window: int,
        slice_s: float,
        marker_every: int,
        one_by_one: bool,
    ) -> None: ...
    def add_pool(self, *, latest: bool = False) -> int: ...
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
    def leave_answers(self) -> None: ...
