from typing_extensions import disjoint_base

from callboard._inside.answers.future import Future

@disjoint_base
class ChannelWait(Future[None]):
    @property
    def end(self) -> object: ...
