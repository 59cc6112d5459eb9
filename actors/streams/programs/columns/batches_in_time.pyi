from typing import Any

from typing_extensions import disjoint_base

from callboard.streams.programs.merging.listening import Listening

@disjoint_base
class BatchesInTime(Listening):
    def __init__(
        self,
        name: str,
        drops: list[int],
        leaves: int | None,
        *,
        by: tuple[str, ...],
        lengths: dict[str, Any],
        size: int,
        is_finite: bool = False,
        **options: Any,
    ) -> None: ...

class MergeBatches(BatchesInTime): ...
