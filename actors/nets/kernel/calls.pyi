from collections.abc import Callable
from typing import Any, final

from callboard.nets.kernel.carrier import Carrier, EntityState, NetNode
from callboard.nets.kernel.record import MovingRecord, Shape

_Planner = Callable[[Shape], Any]

@final
class BoxCall:
    tries: int
    is_over: bool
    @property
    def record(self) -> MovingRecord: ...
    @property
    def arguments(self) -> tuple[Any, ...]: ...
    @property
    def box(self) -> CalledBoxNode: ...
    @property
    def function(self) -> Callable[..., Any]: ...

@final
class CalledBoxState(EntityState): ...

@final
class CalledBoxNode(NetNode):
    @property
    def function(self) -> Callable[..., Any] | None: ...
    @property
    def factory(self) -> Callable[[], Callable[..., Any]] | None: ...
    @property
    def most(self) -> int: ...
    def __init__(
        self,
        path: str,
        planner: _Planner,
        function: Callable[..., Any] | None,
        factory: Callable[[], Callable[..., Any]] | None,
        most: int,
        in_order: bool,
        place: Any,
    ) -> None: ...
    def place_of(self, of: BoxCall) -> Any: ...
    def give(self, carrier: Carrier, of: BoxCall, values: list[Any]) -> None: ...
    def let_pass(self, carrier: Carrier, of: BoxCall) -> None: ...
    def end(self, carrier: Carrier, of: BoxCall) -> None: ...

def records_left(carrier: Carrier) -> list[MovingRecord]: ...
