from collections.abc import Callable
from typing import Any, final

from typing_extensions import disjoint_base

from callboard.frequency.results import Counted
from callboard.streams.errors import StreamError

@final
class Watermark:
    time: Any
    def __init__(self, time: Any) -> None: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Batch:
    rows: list[Any]
    first: int
    final: bool
    lineages: list[int] | None
    end: int | None
    error: StreamError | None
    def __init__(
        self,
        rows: list[Any],
        first: int = 0,
        final: bool = False,
        lineages: list[int] | None = None,
        end: int | None = None,
    ) -> None: ...
    def follower(self) -> Batch: ...
    def __len__(self) -> int: ...

@final
class DividedBatch:
    @property
    def partitions(self) -> list[int]: ...

@disjoint_base
class Program:
    name: str
    kind: str
    partitions: int
    ports: tuple[str, ...]
    errors: str
    releases_gil: bool
    def divided_among(self, lanes: int) -> int: ...
    looks_every: float
    row_counts: Any
    def __init__(
        self,
        name: str,
        *,
        kind: str = "stateless",
        ports: tuple[str, ...] = ("out",),
        errors: str = "fail",
        late_is_counted: bool = False,
    ) -> None: ...
    @property
    def needs_no_order(self) -> bool: ...
    def process(self, batch: Batch, into: list[Batch]) -> None: ...
    def process_many(self, batches: list[Batch], into: list[Batch]) -> None: ...
    def divide(self, batch: Batch) -> DividedBatch: ...
    def process_sub_batch(self, divided: DividedBatch, number: int) -> None: ...
    def gather(self, divided: DividedBatch, into: list[Batch]) -> None: ...
    def wants_heartbeats(self) -> bool: ...
    def waiting_rows(self) -> tuple[int, list[int]]: ...
    def work_of_lanes(self) -> tuple[int, ...]: ...
    def count_keys(self, most: int) -> bool: ...
    def hot_keys(self) -> tuple[Counted, ...]: ...
    serials: list[int]
    def snapshot(self, kept: Any) -> list[Any]: ...
    def restore(
        self, head: tuple[Any, ...], columns: list[list[Any]], kept: Any, divided: bool
    ) -> None: ...
    def close(self) -> None: ...

class Raised:
    __slots__ = ("error",)
    error: Exception
    def __init__(self, error: Exception) -> None: ...

class SideOutput:
    __slots__ = ("name", "row")
    name: str
    row: Any
    def __init__(self, name: str, row: Any) -> None: ...

@disjoint_base
class Answering:
    def __init__(self, function: Callable[[Any], Any]) -> None: ...
    def __call__(self, value: Any, /) -> Any: ...

def check_answer(answer: Any) -> None: ...
