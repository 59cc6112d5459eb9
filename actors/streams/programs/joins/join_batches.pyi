from collections.abc import Callable, Sequence
from typing import Any

from typing_extensions import disjoint_base

from callboard.streams.programs.columns.batches_in_time import BatchesInTime

KINDS: tuple[str, ...]
MOST_TERMS: int

def prefers_buckets(rows: int) -> bool: ...

@disjoint_base
class JoinBatches(BatchesInTime):
    def __init__(
        self,
        name: str,
        drops: list[int],
        leaves: int | None,
        *,
        most: int | None,
        three_step: bool,
        terms: Sequence[tuple[tuple[str, str], Any]],
        masks: tuple[Callable[[dict[str, Any], Any], Any], ...] | None,
        how: str,
        by_buckets: bool,
        suffix: str,
        schemas: Sequence[Any] = ...,
        finds: bool = ...,
        **options: Any,
    ) -> None: ...
