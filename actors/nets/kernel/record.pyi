from collections.abc import Mapping
from typing import Any, final

from callboard.nets.terms.labels import Label, Variant

@final
class Shape:
    @property
    def labels(self) -> tuple[Label, ...]: ...
    @property
    def variant(self) -> Variant: ...
    @property
    def slots(self) -> dict[Label, int]: ...
    def __init__(self, variant: Variant) -> None: ...

@final
class Shapes:
    def of_labels(self, variant: Variant) -> Shape: ...

@final
class Lineage: ...

@final
class MovingRecord:
    @property
    def asked(self) -> Any: ...
    def as_dict(self) -> dict[Label, Any]: ...
    def become(self, shapes: Shapes, values: dict[Label, Any]) -> None: ...

@final
class Assembly:
    @property
    def shape(self) -> Shape: ...

@final
class Assembler:
    def __init__(
        self,
        shapes: Shapes,
        names: dict[str, Label],
        variants: frozenset[Variant] | None,
        consumed: Variant,
        shape: Shape | None,
        place: str,
    ) -> None: ...
    def labelled(self, output: Any, keys: tuple[Label, ...] | None) -> dict[str, Any]: ...
    def read(self, row: Mapping[str, Any]) -> tuple[Shape, tuple[Any, ...]]: ...
