from collections.abc import Callable
from typing import Any

from typing_extensions import disjoint_base

from callboard._inside.answers.future import Future
from callboard._inside.receiving.event_loop import EventLoop
from callboard.scheduling.team import Team
from callboard.streams.programs.program import Program
from callboard.streams.programs.rows.coroutines import Coroutines
from callboard.timers import Timers

@disjoint_base
class Answers(Program):
    def __init__(
        self,
        name: str,
        *,
        ask: Callable[[Any], Future[Any]] | None = None,
        coroutines: Callable[[], Coroutines] | None = None,
        combine: Callable[[Any, Any], Any] | None = None,
        most: int,
        retries: int = 0,
        backoff: float = 0,
        jitter: float = 0,
        **options: Any,
    ) -> None: ...
    @property
    def asks(self) -> bool: ...
    @property
    def waits_for(self) -> str: ...
    @property
    def holds_thread(self) -> bool: ...
    @property
    def in_flight(self) -> int: ...
    def enter_system(
        self, event_loop: EventLoop, timers: Timers, team: Team, seed: int | None = None
    ) -> None: ...

class UnorderedAnswers(Answers):
    add_round: Callable[[], None] | None
