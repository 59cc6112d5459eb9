from collections.abc import Callable, Collection
from typing import Any, final

from callboard.streams.programs.joins.join_index import RowIndex
from callboard.streams.programs.joins.window_rows import WindowRule
from callboard.streams.programs.program import Program
from callboard.streams.programs.rows.in_processes import ProcessAnswers

@final
class LanesInProcesses(ProcessAnswers):
    def __init__(
        self, name: str, *, rule: WindowRule, states: Any, most: int, **options: Any
    ) -> None: ...

@final
class ProcessLane(Program):
    def __init__(
        self, name: str, *, index: Callable[[int, int], RowIndex], **options: Any
    ) -> None: ...
    def found(
        self, sides: bytes, times: list[Any], rows: list[Any], refused: Collection[int]
    ) -> tuple[bytes, bytes, dict[int, Exception], int]: ...
