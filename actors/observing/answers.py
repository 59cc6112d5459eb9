"""The answers to single questions of observers, as values for JSON."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Protocol

from callboard._inside.sending.runtime import Runtime
from callboard.observing.wait_search import waits_of
from callboard.observing.watching import STUCK_AFTER
from callboard.statistics import collect


class Observable(Protocol):
    """The part of an Observer that answers use."""

    runtime: Runtime

    def served(self) -> list[dict[str, Any]]:
        """Return the health of the servers through which other processes reach the system."""
        ...

    def graphs(self) -> list[Any]:
        """Return the graphs and pools that run."""
        ...


def info(observer: Observable) -> dict[str, Any]:
    """Return the system's name and process, and how many actors wait for which reason."""
    runtime = observer.runtime
    return {
        "pid": os.getpid(),
        "parent": os.getppid(),
        "system": runtime.name,
        "program": " ".join(sys.orig_argv),
        "workers": len(runtime.team.workers),
        "reasons": waits_of(runtime, STUCK_AFTER).reasons,
        "dead_letters": runtime.dead_letters.reasons,
        "failures": runtime.dead_letters.failure_count,
    }


def who(observer: Observable) -> dict[str, Any]:
    """Return what identifies the system, and a few figures that cost almost nothing."""
    runtime = observer.runtime
    letters = runtime.dead_letters
    return {
        "pid": os.getpid(),
        "parent": os.getppid(),
        "system": runtime.name,
        "served": observer.served(),
        "dispatches": sum(worker.dispatches for worker in runtime.team.everyone),
        "dead_letters": letters.count,
        "failures": letters.failure_count,
    }


def waits(observer: Observable) -> list[dict[str, Any]]:
    """Return why each actor and operator waits."""
    return [asdict(wait) for wait in waits_of(observer.runtime, STUCK_AFTER)]


def dump(observer: Observable) -> dict[str, Any]:
    """Return all that is known."""
    figures = collect(observer.runtime)
    letters = observer.runtime.dead_letters
    return info(observer) | {
        "monitoring": figures.monitoring,
        "actors": [asdict(one) for one in figures.actors],
        "workers": [asdict(one) for one in figures.workers],
        "channels": [asdict(one) for one in figures.channels],
        "classes": [asdict(one) for one in figures.classes],
        "processes": [asdict(one) for one in figures.processes],
        "graphs": [graph.figures() for graph in observer.graphs()],
        "waits": waits(observer),
        "latest_failures": [[path, report.summary] for path, report in letters.failures],
    }


ANSWERS: dict[str, Callable[[Observable], Any]] = {
    "info": info,
    "who": who,
    "waits": waits,
    "dump": dump,
}


def answer(observer: Observable, question: str) -> Any:
    """Answer a question. An unknown one gets None."""
    known = ANSWERS.get(question)
    return None if known is None else known(observer)
