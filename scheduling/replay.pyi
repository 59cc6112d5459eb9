from collections.abc import Callable
from typing import Any

from typing_extensions import disjoint_base

from callboard.scheduling.priority import ReadyOrder
from callboard.scheduling.team import Team
from callboard.scheduling.worker import WorkerThread

@disjoint_base
class Seeded(ReadyOrder):
    def __init__(self, seed: int) -> None: ...

class ManualTeam(Team):
    def start_dedicated(self, name: str, actor: str) -> WorkerThread: ...

@disjoint_base
class ManualWorker(WorkerThread):
    trace: Callable[[Any, object], object] | None
    def __init__(self, team: Team, policy: ReadyOrder, quantum: int, name: str) -> None: ...
    @property
    def is_here(self) -> bool: ...
    @property
    def is_team_idle(self) -> bool: ...
    def step_once(self) -> bool: ...
