import contextvars
import weakref
from collections.abc import Callable
from typing import Any, Protocol

from typing_extensions import disjoint_base

from callboard._inside.receiving.event_loop import EventLoop
from callboard._inside.sending.ref import ActorRef
from callboard.dead_letters import DeadLetters
from callboard.scheduling.config import Config
from callboard.scheduling.handle import ClassTimes
from callboard.scheduling.placement import PlacementPolicy
from callboard.scheduling.team import Team
from callboard.statistics import Records
from callboard.system import ActorSystem
from callboard.timers import Timers

class HandlerSpans(Protocol):
    def around(self, ref: ActorRef[Any], handler: Callable[..., Any]) -> Callable[..., Any]: ...
    def continued(self, traceparent: str) -> contextvars.Context: ...

@disjoint_base
class Runtime:
    @property
    def team(self) -> Team: ...
    @property
    def name(self) -> str: ...
    @property
    def dead_letters(self) -> DeadLetters: ...
    @property
    def timers(self) -> Timers: ...
    @property
    def config(self) -> Config: ...
    @property
    def manual(self) -> bool: ...
    @property
    def counted(self) -> bool: ...
    @property
    def carrying(self) -> bool: ...
    @property
    def notes_channels(self) -> bool: ...
    @property
    def tuned(self) -> bool: ...
    placement: PlacementPolicy
    spawner: Callable[[ActorRef[Any] | None, type, tuple[Any, ...], dict[str, Any]], Any]
    event_loop: EventLoop
    system_ref: weakref.ref[ActorSystem] | None
    failure: BaseException | None
    on_change: Callable[[], object] | None
    on_spawn: Callable[[], object] | None
    spans: HandlerSpans | None
    circles: Any
    records: Records | None
    closing: bool
    closed: bool
    forked: bool
    sampled_every: int
    def __init__(
        self,
        team: Team,
        name: str,
        dead_letters: DeadLetters,
        timers: Timers,
        config: Config,
        quantum: int,
        manual: bool,
    ) -> None: ...
    @property
    def system(self) -> ActorSystem | None: ...
    @property
    def top(self) -> list[ActorRef[Any]]: ...
    scans: tuple[weakref.ref[Any], ...]
    @property
    def class_times(self) -> dict[str, ClassTimes]: ...
    @property
    def named(self) -> dict[tuple[ActorRef[Any] | None, str], ActorRef[Any]]: ...
    def refuse_fork(self) -> None: ...
