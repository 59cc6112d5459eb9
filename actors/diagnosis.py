"""Diagnosis as text: what a worker runs, and why a system is not idle."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from callboard._inside.answers.wait_cause import WaitReason
from callboard._inside.sending.native_ref import NativeRef
from callboard.core.tracebacks import current_frames, format_stack

if TYPE_CHECKING:
    from callboard._inside.sending.ref import ActorRef
    from callboard._inside.sending.runtime import Runtime
    from callboard.scheduling.elasticity.team_level import LeveledWorker
    from callboard.scheduling.worker import WorkerThread

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


def at_work(runtime: Runtime) -> dict[int, tuple[WorkerThread, float]]:
    """Map the numbers of actors in work to their workers, and to the seconds since they began."""
    found: dict[int, tuple[WorkerThread, float]] = {}
    for worker in runtime.team.everyone:
        number, since = worker.current_actor, worker.clock_read_at
        if number and not worker.is_idle:
            found[number] = worker, max(0, time.monotonic_ns() - since) / 1e9
    return found


def needs_token(ref: ActorRef[Any]) -> bool:
    """Tell whether an actor runs Python code on a worker that it shares."""
    return not (isinstance(ref, NativeRef) or ref._is_dedicated)


def holder_of_token(
    runtime: Runtime, working: Mapping[int, tuple[WorkerThread, float]]
) -> WorkerThread | None:
    """Return the worker that has the interpreter's token, as far as it runs a Python actor now."""
    if runtime.team.token:
        for ref in all_actors(runtime):
            if ref._number in working and needs_token(ref):
                return working[ref._number][0]
    return None


def why_not_idle(runtime: Runtime) -> str:
    """Name the actors in work, in which worker, since when, with their Python stacks.

    Then those that wait in the middle of a message for other things than input, those that owe
    answers, those that are ready, and what holds up operators.
    """
    lines = []
    actors = {ref._number: ref for ref in all_actors(runtime)}
    frames = current_frames()
    now = time.monotonic_ns()
    on_loop = set()
    for worker in runtime.team.everyone:
        if worker.is_idle or worker.thread is None:
            continue
        ref = actors.get(worker.current_actor)
        what = ref._short_path if ref is not None else "no actor"
        since = (now - worker.clock_read_at) / 1e9
        lines.append(f"worker {worker.name} runs {what}, for about {since:.1f} s")
        frame = frames.get(worker.thread.ident or 0)
        if frame is not None:
            lines.extend(line.rstrip() for line in format_stack(frame))
    for ref in actors.values():
        if step := ref._step_since:
            since = (now - step) / 1e9
            lines.append(f"the event loop runs {ref._short_path}, for about {max(since, 0):.1f} s")
            loop = runtime.event_loop.thread
            frame = None if loop is None else frames.get(loop.ident or 0)
            if frame is not None:
                lines.extend(line.rstrip() for line in format_stack(frame))
            on_loop.add(ref)
    waiting = (
        ref
        for ref in actors.values()
        if ref not in on_loop and ref._is_waiting and not ref._is_at_rest
    )
    lines.extend(_some(_waits(ref) for ref in waiting))
    lines.extend(_some(_owes(ref) for ref in actors.values() if ref._owes))
    working = at_work(runtime)
    holder = holder_of_token(runtime, working)
    ready = (
        ref
        for ref in actors.values()
        if ref._wait_cause is None and ref._number not in working and ref not in on_loop
    )
    lines.extend(_some(f"{ref._short_path} {queued(ref, holder)[1]}" for ref in ready))
    system = runtime.system
    for graph in [] if system is None else system._observer.graphs():
        held_up = (each for each in graph.waits() if each.reason != WaitReason.NO_INPUT)
        lines.extend(_some(map(str, held_up)))
    return "\n".join(lines) or "no actor is in work just now: messages keep coming"


def queued(ref: ActorRef[Any], holder: WorkerThread | None) -> tuple[WaitReason, str]:
    """Say why an actor that is ready is not in work: the reason, and in words."""
    worker = ref.worker
    if holder is not None and holder is not worker and needs_token(ref):
        return WaitReason.TOKEN, f"waits for the interpreter, which worker {holder.name} has"
    where = "" if worker is None else f" on worker {worker.name}"
    return WaitReason.QUEUED, f"is ready, and waits for its turn{where}"


def _waits(ref: ActorRef[Any]) -> str:
    what = ref._wait_cause
    return f"{ref._short_path} waits in the middle of a message{f' for {what}' if what else ''}"


def _owes(ref: ActorRef[Any]) -> str:
    asks = "an ask" if ref._owes == 1 else f"{ref._owes} asks"
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
        if ref._number == number:
            return path
    return f"actor {number}"
