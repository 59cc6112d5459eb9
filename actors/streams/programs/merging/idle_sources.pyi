from typing import Any

from typing_extensions import disjoint_base

from callboard.streams.programs.merging.merge import Merge

@disjoint_base
class IdleSources(Merge):
    def __init__(
        self,
        name: str,
        drops: list[int],
        leaves: int | None,
        *,
        idle_timeout: float | None = None,
        **options: Any,
    ) -> None: ...
