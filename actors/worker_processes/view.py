"""The worker processes of a system, as its tools show them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Protocol

from callboard._inside.answers.wait_cause import WaitReason
from callboard.core.text import counted
from callboard.observing.wait_report import WaitRecord
from callboard.scheduling.monitor import ProcessStatistics


class ObservedProcesses(Protocol):
    """Worker processes, as the view needs them."""

    is_over: bool

    def figures(self) -> list[ProcessStatistics]:
        """Return the figures of each process."""


class ProcessesView:
    """The figures of worker processes, and what each waits for. Any thread."""

    def __init__(self, processes: ObservedProcesses) -> None:
        self._processes = processes

    @property
    def ended(self) -> bool:
        """True when the processes are to end."""
        return self._processes.is_over

    def waits(self) -> list[WaitRecord]:
        """Return what the program waits for, process by process."""
        return [_wait_of(figures) for figures in self._processes.figures()]

    def leave_waits(self) -> None:
        """Do nothing: no thread waits here for answers."""

    def end_with_system(self) -> None:
        """Do nothing: their keeper ends with the system."""

    def processes_now(self) -> list[ProcessStatistics]:
        """Return the figures of each process."""
        return self._processes.figures()

    def figures(self) -> dict[str, Any]:
        """Return the processes, and no figures of rows: those are of graphs."""
        counts = dict.fromkeys(("rows", "skipped", "late", "unpaired"), 0)
        processes = [asdict(one) for one in self._processes.figures()]
        return {"run": "worker processes", "operators": [], "processes": processes, **counts}

    def shape(self) -> None:
        """Return nothing: processes have no lines between them."""


def _wait_of(figures: ProcessStatistics) -> WaitRecord:
    number = "no number yet" if figures.pid is None else f"number {figures.pid}"
    waiting = figures.waiting
    if not waiting:
        words, reason = f"(process {number}) has no rounds", WaitReason.NO_INPUT
    else:
        words = f"(process {number}) has not answered {counted(waiting, 'round')}"
        reason = WaitReason.PROCESS
    return WaitRecord("process", figures.name, reason, words)
