from typing import Any

from callboard._ref import ActorRef
from callboard._runtime import Runtime

def spawn(
    runtime: Runtime,
    parent: ActorRef[Any] | None,
    cls: type,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> ActorRef[Any]: ...
