"""Says in words why a system is not at rest."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from callboard._inside.sending.ref import ActorRef
    from callboard._inside.sending.runtime import Runtime


def all_actors(runtime: Runtime) -> Iterator[ActorRef[Any]]:
    """Walk every live actor of a system, parents before their children."""
    pending = list(reversed(runtime.top))
    while pending:
        ref = pending.pop()
        yield ref
        pending.extend(reversed(ref.children))


def describe_unrest(runtime: Runtime) -> str:
    """Name the actors in work, in which worker, since when, with their Python stacks.

    Then those that wait in the middle of a message, and those that owe answers.
    """
    lines = []
    actors = {ref.number: ref for ref in all_actors(runtime)}
    frames = sys._current_frames()
    now = time.monotonic_ns()
    for worker in runtime.team.everyone:
        if worker.is_resting or worker.thread is None:
            continue
        ref = actors.get(worker.current_actor)
        what = ref.path if ref is not None else "no actor"
        since = (now - worker.clock_read_at) / 1e9
        lines.append(f"worker {worker.name} runs {what}, for about {since:.1f} s")
        frame = frames.get(worker.thread.ident or 0)
        if frame is not None:
            lines.extend(line.rstrip() for line in traceback.format_stack(frame))
    for ref in actors.values():
        if ref.is_waiting:
            awaited = ref.awaits
            lines.append(
                f"{ref.path} waits in the middle of a message"
                + (f" for an answer of {awaited.path}" if awaited is not None else "")
            )
    for ref in actors.values():
        if ref.owes:
            asks = "an ask" if ref.owes == 1 else f"{ref.owes} asks"
            lines.append(f"{ref.path} answered {asks} with a future that is not done")
    return "\n".join(lines) or "no actor is in work just now: messages keep coming"
