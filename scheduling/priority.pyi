from inspect import Signature
from typing import Any, ClassVar, final

from typing_extensions import disjoint_base

from callboard.scheduling.handle import Handle

@disjoint_base
class PriorityPolicy:
    patience: int
    # The actor is an ActorRef; a policy may name that type in its own signatures.
    def put_ready(self, actor: Any) -> None: ...
    def fetch_ready(self) -> Handle: ...
    def _check(self) -> None: ...
    def _counts_messages(self) -> bool: ...

@final
class Fifo(PriorityPolicy):
    __signature__: ClassVar[Signature]

@final
class TwoLevel(PriorityPolicy):
    __signature__: ClassVar[Signature]
    def __init__(self, patience: int = 16) -> None: ...

@final
class Weighted(PriorityPolicy):
    __signature__: ClassVar[Signature]
    def __init__(self, ageing: int = 16) -> None: ...

@final
class ShortestFirst(PriorityPolicy):
    __signature__: ClassVar[Signature]
    def __init__(self, patience: int = 100) -> None: ...

@final
class LongestQueue(PriorityPolicy):
    __signature__: ClassVar[Signature]
    def __init__(self, window: int = 16) -> None: ...
