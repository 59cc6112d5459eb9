from typing_extensions import disjoint_base

@disjoint_base
class Line:
    @property
    def sends(self) -> bool: ...

@disjoint_base
class Watch:
    @property
    def end(self) -> object: ...

@disjoint_base
class ChannelSide(Line): ...

@disjoint_base
class Pipe:
    @property
    def senders(self) -> ChannelSide: ...
    @property
    def receivers(self) -> ChannelSide: ...
    @property
    def number(self) -> int: ...
    def why(self) -> str: ...
