from collections.abc import Callable
from typing import Any

from typing_extensions import disjoint_base

from callboard.streams.programs.stateful import Stateful

@disjoint_base
class Objects(Stateful):
    def __init__(
        self,
        name: str,
        make: Callable[..., Any],
        *,
        drops: bool = False,
        paired: bool = False,
        **options: Any,
    ) -> None: ...

class Lots(Objects): ...

@disjoint_base
class Scan(Stateful):
    def __init__(
        self, name: str, initial: Any, function: Callable[[Any, Any], Any], **options: Any
    ) -> None: ...

class Fold(Scan): ...
class Count(Stateful): ...
