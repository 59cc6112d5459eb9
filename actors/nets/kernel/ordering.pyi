from collections.abc import Callable
from typing import Any, final

from callboard.nets.kernel.carrier import NetNode
from callboard.nets.kernel.record import Shape

@final
class Leave(NetNode): ...

@final
class Enter(NetNode):
    def __init__(self, path: str, body: NetNode, leave: Leave) -> None: ...

@final
class Drip(NetNode):
    def __init__(self, path: str, planner: Callable[[Shape], Any], body: NetNode) -> None: ...

@final
class DripEnd(NetNode): ...
