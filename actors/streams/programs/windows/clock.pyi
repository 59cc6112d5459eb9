from collections.abc import Callable
from typing import Any, final

from callboard.streams.programs.program import Program

@final
class Clock(Program):
    def __init__(
        self, name: str, by: Callable[[Any], Any], delay_threshold: Any, every: int, **options: Any
    ) -> None: ...
