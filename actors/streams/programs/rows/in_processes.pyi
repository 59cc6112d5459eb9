from typing import Any

from callboard.streams.programs.program import Program
from callboard.streams.programs.rows.answers import Answers

class SegmentMember(Program):
    def __init__(self, name: str, **options: Any) -> None: ...

class InProcesses(Answers):
    def __init__(
        self,
        name: str,
        *,
        segment: Any,
        members: tuple[SegmentMember, ...],
        most: int,
        **options: Any,
    ) -> None: ...
