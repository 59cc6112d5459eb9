from collections.abc import Callable
from typing import Any, final

from callboard.streams.programs.program import Program
from callboard.streams.programs.rows.in_processes import ProcessAnswers

@final
class ChosenState(ProcessAnswers):
    def __init__(
        self,
        name: str,
        *,
        make: Callable[[], Program],
        away: ProcessAnswers,
        segment: Any,
        most: int,
        **options: Any,
    ) -> None: ...
    def give(self) -> None: ...
    def take(self) -> None: ...
