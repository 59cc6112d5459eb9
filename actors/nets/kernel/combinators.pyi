from collections.abc import Callable
from typing import Any, final

from callboard.nets.kernel.executor import Entity, EntityState, NetExecutor, NetNode
from callboard.nets.kernel.record import MovingRecord, Shape

_Specialize = Callable[[Shape], Any]

@final
class LineageQueue(EntityState): ...

@final
class Unstarted:
    def start(self, executor: NetExecutor) -> None: ...

@final
class ChoiceNode(NetNode):
    def __init__(
        self,
        path: str,
        specialize: _Specialize,
        branches: list[NetNode],
        initialisers: list[int],
        unstarted: Unstarted,
        in_order: bool,
    ) -> None: ...
    def start(self, executor: NetExecutor, at: Entity, record: MovingRecord | None) -> None: ...

@final
class ReplicaCount(EntityState): ...

@final
class StarNode(NetNode):
    again: NetNode
    def __init__(
        self, path: str, specialize: _Specialize, body: NetNode, limit: int, within: list[NetNode]
    ) -> None: ...

@final
class SplitNode(NetNode):
    def __init__(
        self, path: str, specialize: _Specialize, body: NetNode, may_end: bool
    ) -> None: ...

@final
class FeedbackNode(NetNode):
    def __init__(self, path: str, specialize: _Specialize, body: NetNode) -> None: ...

@final
class Leave(NetNode): ...

@final
class Enter(NetNode):
    def __init__(self, path: str, body: NetNode, leave: Leave) -> None: ...

@final
class FeedbackState(EntityState): ...

@final
class OrderedFeedback(NetNode):
    def __init__(self, path: str, specialize: _Specialize, body: NetNode) -> None: ...

@final
class OrderedFeedbackEnd(NetNode): ...

def sweep(executor: NetExecutor) -> None: ...
