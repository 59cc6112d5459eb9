from typing import Any

from typing_extensions import disjoint_base

class Tagged:
    __slots__ = ("tag", "value")
    tag: int
    value: Any
    def __init__(self, tag: int, value: Any) -> None: ...

class NativeRecord:
    __slots__ = ("data",)
    data: bytes
    def __init__(self, data: bytes) -> None: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...

@disjoint_base
class NativeBuffer:
    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
