from collections.abc import Callable

from typing_extensions import disjoint_base

from callboard.scheduling.worker import WorkerThread

@disjoint_base
class WorkerRegistry:
    workers: list[WorkerThread]
    started: int
    dedicated: list[WorkerThread]
    monitoring: str
    timed: bool
    hand_over_records: Callable[[WorkerThread], object] | None
    time_slice: float
    def __init__(self, *args: object) -> None: ...
    def observe(self, monitoring: str, timed: bool) -> None: ...
    def forget_dedicated(self, worker: WorkerThread) -> None: ...
    def note_end(self, worker: WorkerThread) -> None: ...
    @property
    def everyone(self) -> list[WorkerThread]: ...
