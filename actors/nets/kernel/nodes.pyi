from collections.abc import Callable
from typing import Any, final

from callboard.nets.kernel.carrier import Carrier, Entity, EntityState, NetNode
from callboard.nets.kernel.record import Assembler, MovingRecord, Shape
from callboard.nets.terms.labels import Label

_Planner = Callable[[Shape], Any]

@final
class FilterPlan:
    def __init__(self, function: Callable[..., Any], single: bool, shapes: list[Any]) -> None: ...

@final
class FilterNode(NetNode): ...

@final
class BoxPlan:
    def __init__(
        self, slots: list[int], assembler: Assembler, keys: tuple[Label, ...] | None
    ) -> None: ...

@final
class BoxNode(NetNode):
    def __init__(
        self,
        path: str,
        planner: _Planner,
        function: Callable[..., Any] | None,
        factory: Callable[[], Callable[..., Any]] | None,
        generates: bool,
        holds: bool,
    ) -> None: ...

@final
class SyncPlan:
    def __init__(self, patterns: list[int], guards: list[Any]) -> None: ...

@final
class SyncNode(NetNode):
    def __init__(
        self, path: str, planner: _Planner, patterns: int, merger: Callable[..., Any]
    ) -> None: ...

@final
class TicketQueue(EntityState): ...

@final
class Unstarted:
    def start(self, carrier: Carrier) -> None: ...

@final
class ChoiceNode(NetNode):
    def __init__(
        self,
        path: str,
        planner: _Planner,
        branches: list[NetNode],
        initialisers: list[int],
        unstarted: Unstarted,
        in_order: bool,
    ) -> None: ...
    def start(self, carrier: Carrier, at: Entity, record: MovingRecord | None) -> None: ...

@final
class ReplicaCount(EntityState): ...

@final
class StarNode(NetNode):
    again: NetNode
    def __init__(
        self, path: str, planner: _Planner, body: NetNode, limit: int, within: list[NetNode]
    ) -> None: ...

@final
class SplitNode(NetNode):
    def __init__(self, path: str, planner: _Planner, body: NetNode, may_end: bool) -> None: ...

@final
class FeedbackNode(NetNode):
    def __init__(self, path: str, planner: _Planner, body: NetNode) -> None: ...

def sweep(carrier: Carrier) -> None: ...
