from typing import Any

from typing_extensions import disjoint_base

from callboard._inside.sending.ref import ActorRef
from callboard._inside.sending.runtime import Runtime

@disjoint_base
class ClassTotals:
    @property
    def live(self) -> int: ...
    @property
    def queued(self) -> int: ...
    @property
    def longest(self) -> int: ...
    @property
    def messages(self) -> int: ...
    @property
    def busy_ns(self) -> int: ...
    @property
    def dropped(self) -> int: ...

@disjoint_base
class ActorScan:
    def __init__(self, runtime: Runtime) -> None: ...
    def look(
        self, by: str, most: int, working: dict[int, float], part: str = ""
    ) -> tuple[
        float,
        tuple[int, int, int],
        list[tuple[int, int, ActorRef[Any], int, int]],
        list[ActorRef[Any]],
    ]: ...
    def with_queue(self, least: int) -> list[ActorRef[Any]]: ...
    def add_to(self, totals: dict[type, ClassTotals]) -> None: ...

def first_children(
    runtime: Runtime, ref: ActorRef[Any] | None, most: int
) -> tuple[list[ActorRef[Any]], int]: ...
