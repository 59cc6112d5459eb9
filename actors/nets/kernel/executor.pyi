from collections.abc import Callable
from typing import Any, Self, final

from typing_extensions import disjoint_base

from callboard.nets.kernel.record import Assembler, MovingRecord, Shape, Shapes
from callboard.nets.terms.labels import Variant

@disjoint_base
class NetNode:
    options: Any
    place: str
    is_leaf: bool
    consumed: Variant | None
    passed: int
    alive: int
    made: int
    running: int
    waiting: int
    calls: int
    tries: int
    failures: int
    spent: int
    worst: int
    @property
    def path(self) -> str: ...
    def __init__(self, path: str, specialize: Callable[[Shape], Any] | None) -> None: ...
    def note_try(self, seconds: float) -> None: ...

@final
class Entity: ...

@disjoint_base
class EntityState: ...

@final
class KeptRecords(EntityState): ...

@final
class NetExecutor:
    outputs: list[Any]
    answered: list[Any]
    calls: list[Any]
    unsent: list[Any]
    running: set[Any]
    touched: list[Any]
    cells: dict[float | None, dict[Entity, float]]
    clock: Callable[[], float]
    failed: Callable[[NetNode, MovingRecord, BaseException], bool]
    max_outputs: int
    elsewhere: int
    max_elsewhere: int
    keeps_lineage: bool
    first: Entity | None
    now: float
    @property
    def shapes(self) -> Shapes: ...
    @property
    def hops(self) -> int: ...
    @property
    def open(self) -> int: ...
    @property
    def taken(self) -> int: ...
    @property
    def is_idle(self) -> bool: ...
    @property
    def is_empty(self) -> bool: ...
    @property
    def kept(self) -> int: ...
    @property
    def next_expiry(self) -> float: ...
    def __new__(cls, shapes: Shapes) -> Self: ...
    def run(self, hops: int) -> bool: ...
    def take(
        self, entry: Assembler, rows: list[Any], at: int, window: int, until: int, asked: Any
    ) -> int: ...
    def start(self, empty: Shape) -> None: ...
    def expired(self, now: float) -> list[MovingRecord]: ...
    def end(self) -> list[MovingRecord]: ...

@final
class Identity(NetNode): ...

@final
class Series(NetNode):
    def __init__(self, path: str, parts: list[NetNode]) -> None: ...

@final
class Out(NetNode): ...

def begin(net: NetNode) -> Entity: ...
def records_left(executor: NetExecutor) -> list[MovingRecord]: ...
