from typing import Any

from callboard._inside.sending.ref import ActorRef
from callboard._inside.sending.runtime import Runtime

def spawn(
    runtime: Runtime,
    parent: ActorRef[Any] | None,
    cls: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> ActorRef[Any]: ...
def spawn_in_system(self: Any, cls: Any, /, *args: Any, **kwargs: Any) -> ActorRef[Any]: ...
def spawn_divided(
    runtime: Runtime,
    parent: ActorRef[Any] | None,
    cls: type,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    options: dict[str, Any],
) -> ActorRef[Any]: ...
def check_options(runtime: Runtime, cls: type, options: dict[str, Any]) -> None: ...
