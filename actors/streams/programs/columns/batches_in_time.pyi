from typing import Any

from typing_extensions import disjoint_base

from callboard.streams.programs.merging.merge import IdleSources

@disjoint_base
class BatchesInTime(IdleSources):
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
