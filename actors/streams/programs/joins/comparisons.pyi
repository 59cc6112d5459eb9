from typing import Any

from typing_extensions import disjoint_base

from callboard.streams.programs.columns.scale import Scale

@disjoint_base
class Comparison:
    can: str
    def holds(self, one: Any, other: Any) -> bool: ...
    def check(self, value: Any, first: Any) -> None: ...
    def is_native(self) -> bool: ...
    def on(self, scale: Scale) -> Comparison: ...

class Nearness(Comparison):
    distance: Any
    def __init__(self, distance: Any) -> None: ...
