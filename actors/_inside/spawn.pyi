from typing import Any

from callboard._inside.sending.ref import ActorRef
from callboard._inside.sending.runtime import Runtime

def spawn(
    runtime: Runtime,
    parent: ActorRef[Any] | None,
    cls: type,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> ActorRef[Any]: ...
