from typing import Any

from typing_extensions import disjoint_base

from callboard.streams.programs.program import Program

@disjoint_base
class Merge(Program):
    def __init__(self, name: str, drops: list[int], leaves: int | None, **options: Any) -> None: ...

@disjoint_base
class Zip(Merge): ...

@disjoint_base
class IdleSources(Merge):
    def __init__(
        self,
        name: str,
        drops: list[int],
        leaves: int | None,
        *,
        idle_timeout: float | None = None,
        **options: Any,
    ) -> None: ...
