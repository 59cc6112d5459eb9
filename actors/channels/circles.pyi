from typing_extensions import disjoint_base

from callboard.channels.pipe import ChannelSide

@disjoint_base
class CircleWatch:
    @property
    def sides(self) -> list[ChannelSide]: ...
    def look_again(self) -> None: ...
    def look(self) -> bool: ...
