from collections.abc import Callable
from typing import Any, final

from typing_extensions import disjoint_base

from callboard.nets.kernel.executor import EntityState, NetExecutor, NetNode
from callboard.nets.kernel.record import Assembler, MovingRecord, Shape
from callboard.nets.terms.labels import Label

_Specialize = Callable[[Shape], Any]

@final
class SpecializedFilter:
    def __init__(self, function: Callable[..., Any], single: bool, shapes: list[Any]) -> None: ...

@final
class FilterNode(NetNode): ...

@final
class SpecializedBox:
    def __init__(
        self, slots: list[int], assembler: Assembler, keys: tuple[Label, ...] | None
    ) -> None: ...

@disjoint_base
class BoxNode(NetNode):
    function: Callable[..., Any] | None
    @property
    def generates(self) -> bool: ...
    def __init__(
        self,
        path: str,
        specialize: _Specialize,
        function: Callable[..., Any] | None,
        factory: Callable[[], Callable[..., Any]] | None,
        generates: bool,
        collects: bool,
    ) -> None: ...

@final
class SpecializedSync:
    def __init__(self, patterns: list[int], guards: list[Any]) -> None: ...

@final
class SyncNode(NetNode):
    def __init__(
        self, path: str, specialize: _Specialize, patterns: int, merger: Callable[..., Any]
    ) -> None: ...

@final
class BoxCall(EntityState):
    tries: int
    is_over: bool
    @property
    def size(self) -> int: ...
    @property
    def record(self) -> MovingRecord: ...
    @property
    def arguments(self) -> tuple[Any, ...]: ...
    @property
    def box(self) -> CalledBoxNode: ...
    @property
    def function(self) -> Callable[..., Any]: ...

@final
class CalledBoxState(EntityState): ...

@final
class CalledBoxNode(NetNode):
    @property
    def function(self) -> Callable[..., Any] | None: ...
    @property
    def factory(self) -> Callable[[], Callable[..., Any]] | None: ...
    def __init__(
        self,
        path: str,
        specialize: _Specialize,
        function: Callable[..., Any] | None,
        factory: Callable[[], Callable[..., Any]] | None,
        max_calls: int,
        in_order: bool,
        where: Any,
    ) -> None: ...
    def place_of(self, of: BoxCall) -> Any: ...
    def give(self, executor: NetExecutor, of: BoxCall, values: list[Any]) -> None: ...
    def pass_record(self, executor: NetExecutor, of: BoxCall) -> None: ...
    def end(self, executor: NetExecutor, of: BoxCall) -> None: ...
