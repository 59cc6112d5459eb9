from collections.abc import Sequence
from typing import Any, final

from callboard.streams.errors import StreamError
from callboard.streams.programs.program import Batch, Program
from callboard.streams.programs.rows.answers import Answers

class SegmentMember(Program):
    def __init__(self, name: str, **options: Any) -> None: ...

class ProcessAnswers(Answers):
    def __init__(
        self,
        name: str,
        *,
        segment: Any,
        members: tuple[SegmentMember, ...] = (),
        tries_again: bool = False,
        **options: Any,
    ) -> None: ...

@final
class InProcesses(ProcessAnswers):
    def __init__(
        self,
        name: str,
        *,
        segment: Any,
        members: tuple[SegmentMember, ...],
        most: int,
        has_state: bool = False,
        chooses: bool = False,
        **options: Any,
    ) -> None: ...

def pass_through(
    programs: Sequence[Program], batch: Batch
) -> tuple[list[Batch], StreamError | None, list[tuple[int, int, int, int]]]: ...
