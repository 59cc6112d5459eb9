from collections.abc import Callable
from typing import Any, final

@final
class SharedFunction:
    @property
    def function(self) -> Callable[..., Any]: ...
    def __init__(self, function: Callable[..., Any]) -> None: ...

def shared(function: Any) -> Any: ...
