from inspect import Signature
from typing import Any, ClassVar, final

from typing_extensions import disjoint_base

from callboard.scheduling.handle import Handle

@disjoint_base
class ReadyOrder:
    def _counts_messages(self) -> bool: ...

@disjoint_base
class PriorityPolicy(ReadyOrder):
    patience: int
    # The actor is an ActorRef; a policy may name that type in its own signatures.
    def put_ready(self, actor: Any) -> None: ...
    def fetch_ready(self) -> Handle: ...
    def _check(self) -> None: ...

@final
class Fifo(ReadyOrder):
    __signature__: ClassVar[Signature]

@final
class TwoLevel(ReadyOrder):
    __signature__: ClassVar[Signature]
    def __init__(self, patience: int = 16) -> None: ...

@final
class Weighted(ReadyOrder):
    __signature__: ClassVar[Signature]
    def __init__(self, ageing: int = 16) -> None: ...

@final
class ShortestFirst(ReadyOrder):
    __signature__: ClassVar[Signature]
    def __init__(self, patience: int = 100) -> None: ...

@final
class LongestQueue(ReadyOrder):
    __signature__: ClassVar[Signature]
    def __init__(self, window: int = 16) -> None: ...
