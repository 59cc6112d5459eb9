from collections.abc import Callable
from typing import Any

from typing_extensions import disjoint_base

from callboard.streams.programs.program import Program

@disjoint_base
class Stateful(Program):
    def __init__(
        self,
        name: str,
        *,
        key: Callable[[Any], Any] | None = None,
        partitions: int = 1,
        marks_time: bool = False,
        marks_end: bool = False,
        kind: str = "stateful",
        **options: Any,
    ) -> None: ...
