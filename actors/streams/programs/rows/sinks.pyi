from collections.abc import Callable
from typing import Any

from typing_extensions import disjoint_base

from callboard._inside.sending.ref import ActorRef
from callboard.recipient import Recipient
from callboard.streams.programs.program import Program

@disjoint_base
class Collect(Program):
    collected: list[Any]

@disjoint_base
class Call(Program):
    start: Callable[[], Any] | None
    place: Any
    def __init__(
        self,
        name: str,
        function: Callable[[Any], Any],
        start: Callable[[], Any] | None = None,
        finish: Callable[[], Any] | None = None,
        end: Callable[[], Any] | None = None,
        after: Callable[[], Any] | None = None,
        place: Any = None,
        **options: Any,
    ) -> None: ...

@disjoint_base
class TellAll(Program):
    def __init__(self, name: str, recipient: Recipient[Any], **options: Any) -> None: ...

@disjoint_base
class Tell(Program):
    def __init__(self, name: str, ref: ActorRef[Any], **options: Any) -> None: ...
