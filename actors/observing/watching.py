"""The answers to an observer that stays connected: figures since its last question."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from callboard._inside.answers.wait_cause import WaitReason
from callboard.core import checks
from callboard.core.monitoring.time_distribution import NO_TIMES, TimeDistribution
from callboard.core.tracebacks import current_frames
from callboard.diagnosis import at_work, needs_token
from callboard.observing.branches import MOST_LINES
from callboard.observing.branches import branches as tree_of
from callboard.observing.kept_dead_letters import MOST_LETTERS
from callboard.observing.scan import ActorScan
from callboard.observing.wait_report import WaitRecord
from callboard.observing.wait_search import wait_of
from callboard.scheduling.monitor import ClassStatistics
from callboard.statistics import figures_of_worker

if TYPE_CHECKING:
    from callboard._inside.sending.ref import ActorRef
    from callboard._inside.sending.runtime import Runtime

STUCK_AFTER = 1.0
"""The seconds after which an actor in one message is stuck, as in `system.why_waiting()`."""
MOST_ACTORS = 1000
MOST_OPERATORS = 500
MOST_CLASSES = 20


class SystemView:
    """One observer's view of a system. Between questions, it costs only memory.

    One thread at a time.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._scan = ActorScan(runtime)
        self._graphs: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._numbers = itertools.count(1)
        self._times: dict[str, tuple[TimeDistribution, TimeDistribution]] = {}

    def answer(self, question: str) -> dict[str, Any]:
        """Answer a question in JSON: see `look()`. Raises ValueError."""
        asked = json.loads(question)
        if not isinstance(asked, dict):
            raise ValueError(f"a question expects an object, got {type(asked).__name__}")
        most = checks.whole("most", asked.get("most", 40), 0, MOST_ACTORS, error=ValueError)
        letters = checks.whole(
            "letters", asked.get("letters", 0), 0, MOST_LETTERS, error=ValueError
        )
        branches, shapes = asked.get("branches", {}), asked.get("shapes", [])
        if not isinstance(branches, dict) or not isinstance(shapes, list):
            raise ValueError("`branches` expects an object, and `shapes` a list")
        return self.look(
            str(asked.get("sort", "load")),
            most,
            str(asked.get("part", "")),
            branches={
                number: checks.whole("branches", most, 0, MOST_LINES, error=ValueError)
                for number, most in branches.items()
            },
            letters=letters,
            shapes=shapes,
        )

    def look(
        self,
        sort: str = "load",
        most: int = 40,
        part: str = "",
        *,
        branches: Mapping[str, int] | None = None,
        letters: int = 0,
        shapes: Collection[int] = (),
    ) -> dict[str, Any]:
        """Return the figures, for JSON: those of actors since the last look, and others so far.

        `branches` are the open ones of the tree of actors, see branches(). `letters` is the number
        of dead letters to return, and `shapes` the numbers of graphs whose shape is to be returned.
        """
        runtime = self._runtime
        system, team, dead = runtime.system, runtime.team, runtime.dead_letters
        working = at_work(runtime)
        loop = runtime.event_loop.thread
        since = {number: seconds for number, (_, seconds) in working.items()}
        seconds, (live, idle, queued), first, others = self._scan.look(sort, most, since, part)
        in_work = [ref for ref in others if ref._number in working]
        tokens = (working[ref._number][0] for ref in in_work if needs_token(ref))
        holder = next(tokens, None) if team.token else None
        frames = current_frames()
        waits: dict[ActorRef[Any], WaitRecord] = {}
        for ref in {*others, *(entry[2] for entry in first)}:
            waits[ref] = wait_of(ref, ref._short_path, working, holder, STUCK_AFTER, frames, loop)
        inside = {
            working[ref._number][0]: (waits[ref].name, working[ref._number][1]) for ref in in_work
        }
        tree = []
        if branches:

            def wait(ref: ActorRef[Any]) -> WaitRecord:
                found = waits.get(ref)
                path = ref._short_path
                return found or wait_of(ref, path, working, holder, STUCK_AFTER, frames, loop)

            tree = tree_of(runtime, branches, wait)
        level = None if team.controller is None else team.controller.statistics()
        return {
            "system": runtime.name,
            "monitoring": team.monitoring,
            "timed": any(worker.is_timed for worker in team.workers),
            "seconds": seconds,
            "live": live,
            "queued": queued,
            "running": team.level,
            "reasons": _count(waits[ref] for ref in others)
            | {"no input": idle}
            | ({"more": left} if (left := live - idle - len(others)) > 0 else {}),
            "actors": [
                _actor(ref, waits[ref], since.get(ref._number), messages, busy)
                for _, _, ref, messages, busy in first
                if ref.worker is not None
            ],
            "classes": self._classes(),
            "stuck": [asdict(one) for one in waits.values() if one.reason == WaitReason.STUCK],
            "workers": [
                asdict(figures_of_worker(worker, *inside.get(worker, (None, None))))
                | {"is_idle": worker.is_idle}
                for worker in team.everyone
            ],
            "level": None if level is None else str(level),
            "graphs": self._operators(shapes),
            "served": [] if system is None else system._observer.served(),
            "tree": tree,
            "letters": [] if system is None else system._observer.letters.latest(letters),
            "dead_letters": dead.reasons,
            "failures": dead.failure_count,
            "latest_failures": [[path, report.summary] for path, report in dead.failures[-5:]],
        }

    def _classes(self) -> list[dict[str, Any]]:
        """Return the times of classes of actors since the last look, the busiest first."""
        before, now = self._times, self._runtime.class_times
        self._times = {name: times.read() for name, times in now.items()}
        found = []
        for name, times in self._times.items():
            old = before.get(name, (NO_TIMES, NO_TIMES))
            processing, in_mailbox = (one.since(was) for one, was in zip(times, old, strict=True))
            found.append(ClassStatistics.of(name, processing, in_mailbox))
        found.sort(key=lambda one: one.processing.total_ns, reverse=True)
        return [
            {
                "name": one.name,
                "messages": one.messages,
                "p50": one.p50,
                "p99": one.p99,
                "mailbox_p50": one.mailbox_p50,
                "mailbox_p99": one.mailbox_p99,
            }
            for one in found[:MOST_CLASSES]
            if one.messages or one.mailbox_p50 is not None
        ]

    def _operators(self, shapes: Collection[int]) -> list[dict[str, Any]]:
        system = self._runtime.system
        found = []
        for graph in [] if system is None else system._observer.graphs():
            if graph not in self._graphs:
                self._graphs[graph] = next(self._numbers)
            number = self._graphs[graph]
            reasons = {wait.name: asdict(wait) for wait in graph.waits()}
            more: dict[str, Any] = {"number": number}
            more["waits"] = list(reasons.values())[:MOST_OPERATORS]
            if number in shapes:
                more["shape"] = graph.shape()
            found.append(graph.figures() | more)
        return sorted(found, key=lambda one: one["number"])


def _count(waits: Iterable[WaitRecord]) -> dict[str, int]:
    counts = Counter(wait.reason for wait in waits)
    return {reason: counts[reason] for reason in WaitReason if reason in counts}


def _actor(
    ref: ActorRef[Any], wait: WaitRecord, in_message: float | None, messages: int, busy_ns: int
) -> dict[str, Any]:
    figures = asdict(ref._statistics(wait.name, in_message))
    figures |= {"class": ref.actor_class.__name__, "reason": wait.reason, "words": wait.words}
    return figures | {"new_messages": messages, "new_busy": busy_ns / 1e9}
