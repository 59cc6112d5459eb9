from typing import final
from weakref import ReferenceType

from callboard.native import NativeActor
from callboard.streams.running.flow import GraphFlow

@final
class NativeLane(NativeActor):
    def __init__(self, flow: ReferenceType[GraphFlow], number: int) -> None: ...
