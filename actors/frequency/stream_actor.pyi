from typing import Any

from typing_extensions import disjoint_base

from callboard.frequency.space_saving import SpaceSaving
from callboard.native import NativeActor, NativeBuffer

@disjoint_base
class StreamActor(NativeActor):
    def __init__(self, summary: SpaceSaving) -> None: ...

def packed(keys: list[Any], weights: list[int] | None) -> NativeBuffer | None: ...
