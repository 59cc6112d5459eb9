from collections.abc import Callable
from typing import Any, final

from callboard.nets.kernel.carrier import EntityState, NetNode
from callboard.nets.kernel.record import Shape

@final
class Leave(NetNode): ...

@final
class Enter(NetNode):
    def __init__(self, path: str, body: NetNode, leave: Leave) -> None: ...

@final
class FeedbackState(EntityState): ...

@final
class OrderedFeedback(NetNode):
    def __init__(self, path: str, planner: Callable[[Shape], Any], body: NetNode) -> None: ...

@final
class OrderedFeedbackEnd(NetNode): ...
