from collections.abc import Callable
from typing import Any

from typing_extensions import disjoint_base

from callboard.streams.programs.program import Program

@disjoint_base
class Objects(Program):
    def __init__(
        self, name: str, make: Callable[..., Any], *, drops: bool = False, **options: Any
    ) -> None: ...

class Chunks(Objects): ...
class Timed(Objects): ...

@disjoint_base
class Scan(Program):
    def __init__(
        self, name: str, initial: Any, function: Callable[[Any, Any], Any], **options: Any
    ) -> None: ...

class Count(Program): ...

@disjoint_base
class Gather(Program):
    def __init__(
        self,
        name: str,
        function: Callable[[list[Any]], tuple[Any, dict[int, Exception]]],
        size: int,
        **options: Any,
    ) -> None: ...
