"""The answers to observers of a system: values for JSON."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Protocol

from callboard._inside.sending.runtime import Runtime
from callboard.observing.wait import Waits
from callboard.statistics import collect


class Observable(Protocol):
    """The part of a system that is looked into."""

    _runtime: Runtime

    def _served(self) -> list[dict[str, Any]]:
        """Return the health of the servers by which others reach it."""
        ...

    def waits(self) -> Waits:
        """Return why each actor and operator does nothing."""
        ...


def info(system: Observable) -> dict[str, Any]:
    """Return the system's name and process, and how many of what there are."""
    waits = system.waits()
    return {
        "pid": os.getpid(),
        "parent": os.getppid(),
        "system": system._runtime.name,
        "program": " ".join(sys.orig_argv),
        "workers": len(system._runtime.team.workers),
        "reasons": waits.reasons,
        "dead_letters": system._runtime.dead_letters.reasons,
        "failures": system._runtime.dead_letters.failure_count,
    }


def who(system: Observable) -> dict[str, Any]:
    """Return what tells systems from each other, and a few figures that cost next to nothing."""
    runtime = system._runtime
    letters = runtime.dead_letters
    return {
        "pid": os.getpid(),
        "parent": os.getppid(),
        "system": runtime.name,
        "served": system._served(),
        "dispatches": sum(worker.dispatches for worker in runtime.team.everyone),
        "dead_letters": letters.count,
        "failures": letters.failure_count,
    }


def waits(system: Observable) -> list[dict[str, Any]]:
    """Return why each actor and operator does nothing."""
    return [asdict(wait) for wait in system.waits()]


def dump(system: Observable) -> dict[str, Any]:
    """Return all that is known."""
    figures = collect(system._runtime)
    letters = system._runtime.dead_letters
    whole = system._runtime.system
    graphs = whole._graphs() if whole is not None else ()
    return info(system) | {
        "monitoring": figures.monitoring,
        "actors": [asdict(one) for one in figures.actors],
        "workers": [asdict(one) for one in figures.workers],
        "channels": [asdict(one) for one in figures.channels],
        "classes": [asdict(one) for one in figures.classes],
        "graphs": [graph.figures() for graph in graphs],
        "waits": waits(system),
        "latest_failures": [[path, report.summary] for path, report in letters.failures],
    }


ANSWERS: dict[str, Callable[[Observable], Any]] = {
    "info": info,
    "who": who,
    "waits": waits,
    "dump": dump,
}


def answer(system: Observable, question: str) -> Any:
    """Answer a question; None to one that there is not."""
    known = ANSWERS.get(question)
    return None if known is None else known(system)
