from typing_extensions import disjoint_base

from callboard._inside.answers.future import Future
from callboard.channels.pipe import ChannelSide

@disjoint_base
class ChannelWait(Future[None]):
    @property
    def end(self) -> object: ...

@disjoint_base
class DeadlockDetector:
    @property
    def sides(self) -> list[ChannelSide]: ...
    def look_again(self) -> None: ...
    def look(self) -> bool: ...
