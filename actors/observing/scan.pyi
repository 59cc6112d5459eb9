from typing import Any, final

from callboard._inside.sending.ref import ActorRef
from callboard._inside.sending.runtime import Runtime

@final
class ActorScan:
    def __init__(self, runtime: Runtime) -> None: ...
    def look(
        self, by: str, most: int, working: dict[int, float], part: str = ""
    ) -> tuple[
        float,
        tuple[int, int],
        list[tuple[int, int, ActorRef[Any], int, int]],
        list[ActorRef[Any]],
    ]: ...
