"""Says in words what a worker runs, and why a system is not idle."""

from __future__ import annotations

import itertools
import sys
import time
import traceback
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from callboard._inside.sending.ref import ActorRef
    from callboard._inside.sending.runtime import Runtime
    from callboard.scheduling.elasticity.leveled import LeveledWorker

# How many actors of a kind a text names.
MOST_LINES = 100


def all_actors(runtime: Runtime) -> Iterator[ActorRef[Any]]:
    """Walk every live actor of a system, parents before their children."""
    pending = list(reversed(runtime.top))
    while pending:
        ref = pending.pop()
        yield ref
        pending.extend(reversed(ref.children))


def actors_and_paths(runtime: Runtime) -> Iterator[tuple[ActorRef[Any], str]]:
    """Walk every live actor, as `all_actors()` does, each with its path.

    In a deep tree this is much faster than to ask each for its path.
    """
    pending = [(ref, "") for ref in reversed(runtime.top)]
    while pending:
        ref, above = pending.pop()
        path = f"{above}/{ref.name}"
        yield ref, path
        pending.extend((child, path) for child in reversed(ref.children))


def why_not_idle(runtime: Runtime) -> str:
    """Name the actors in work, in which worker, since when, with their Python stacks.

    Then those that wait in the middle of a message for other things than input, and those that owe
    answers.
    """
    lines = []
    actors = {ref.number: ref for ref in all_actors(runtime)}
    frames = sys._current_frames()
    now = time.monotonic_ns()
    for worker in runtime.team.everyone:
        if worker.is_idle or worker.thread is None:
            continue
        ref = actors.get(worker.current_actor)
        what = ref._short_path if ref is not None else "no actor"
        since = (now - worker.clock_read_at) / 1e9
        lines.append(f"worker {worker.name} runs {what}, for about {since:.1f} s")
        frame = frames.get(worker.thread.ident or 0)
        if frame is not None:
            lines.extend(line.rstrip() for line in traceback.format_stack(frame))
    waiting = (ref for ref in actors.values() if ref.is_waiting and not ref.is_at_rest)
    lines.extend(_some(_waits(ref) for ref in waiting))
    lines.extend(_some(_owes(ref) for ref in actors.values() if ref.owes))
    return "\n".join(lines) or "no actor is in work just now: messages keep coming"


def _waits(ref: ActorRef[Any]) -> str:
    what = ref.waits_for
    return f"{ref._short_path} waits in the middle of a message{f' for {what}' if what else ''}"


def _owes(ref: ActorRef[Any]) -> str:
    asks = "an ask" if ref.owes == 1 else f"{ref.owes} asks"
    return f"{ref._short_path} answered {asks} with a future that is not done"


def _some(lines: Iterator[str]) -> Iterator[str]:
    """Yield the first lines, and how many more there are."""
    yield from itertools.islice(lines, MOST_LINES)
    left = sum(1 for _ in lines)
    if left:
        yield f"... and {left} more"


def name_of_work(runtime: Runtime, worker: LeveledWorker) -> str:
    """Return the path of the actor that a worker is in, or its number if that has ended."""
    number = worker.current_actor
    for ref, path in actors_and_paths(runtime):
        if ref.number == number:
            return path
    return f"actor {number}"
