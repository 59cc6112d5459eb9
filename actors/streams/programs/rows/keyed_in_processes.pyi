from typing import Any, final

from callboard.streams.programs.program import Program
from callboard.streams.programs.rows.in_processes import ProcessAnswers, SegmentMember

@final
class KeyedInProcesses(ProcessAnswers):
    def __init__(
        self,
        name: str,
        *,
        keyed: Program,
        states: Any,
        members: tuple[SegmentMember, ...],
        most: int,
        **options: Any,
    ) -> None: ...

def given_key(key: Any) -> Any: ...
