from collections.abc import Callable, Sequence
from typing import Any

from typing_extensions import disjoint_base

from callboard.streams.programs.merging.merge import IdleSources

@disjoint_base
class InTime(IdleSources):
    def __init__(
        self,
        name: str,
        drops: list[int],
        leaves: int | None,
        times_of: Sequence[Callable[[Any], Any]],
        delay_threshold: Any = None,
        **options: Any,
    ) -> None: ...

class MergeInTime(InTime):
    def __init__(
        self,
        name: str,
        drops: list[int],
        leaves: int | None,
        times_of: Sequence[Callable[[Any], Any]],
        *,
        keeps_late: bool = False,
        **options: Any,
    ) -> None: ...
