from collections.abc import Sequence
from inspect import Signature
from typing import ClassVar, final

from typing_extensions import disjoint_base

@final
class OperatorView:
    name: str
    @property
    def position(self) -> int: ...
    @property
    def cost(self) -> float: ...
    @property
    def selectivity(self) -> float: ...
    @property
    def queued(self) -> float: ...
    @property
    def workers(self) -> int: ...
    @property
    def max_workers(self) -> int: ...
    @property
    def busy(self) -> float: ...
    @property
    def taken(self) -> int: ...
    @property
    def given(self) -> int: ...

@disjoint_base
class Heuristic:
    def choose(self, operators: Sequence[OperatorView]) -> OperatorView: ...
    def _check(self) -> None: ...

@final
class QueueSizeThrottling(Heuristic):
    __signature__: ClassVar[Signature]
    def __init__(self, capacity: float = 65536) -> None: ...

@final
class LastInPipeline(Heuristic):
    __signature__: ClassVar[Signature]
    def __init__(self, follow: bool = True) -> None: ...

@final
class EstimatedTime(Heuristic):
    __signature__: ClassVar[Signature]
    def __init__(self) -> None: ...

@final
class CurrentThroughput(Heuristic):
    __signature__: ClassVar[Signature]
    def __init__(self, window: float = 0.1) -> None: ...
