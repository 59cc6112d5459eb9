"""Finds out why the actors of a system wait, from their present state."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any

from callboard._inside.answers.wait_cause import WaitReason
from callboard.core.tracebacks import current_frames, format_stack
from callboard.diagnosis import actors_and_paths, at_work, holder_of_token, queued
from callboard.observing.wait_report import WaitRecord, WaitReport

if TYPE_CHECKING:
    from callboard._inside.sending.ref import ActorRef
    from callboard._inside.sending.runtime import Runtime
    from callboard.scheduling.worker import WorkerThread


def waits_of(runtime: Runtime, stuck_after: float) -> WaitReport:
    """Report why every live actor, and every operator of a running graph, waits."""
    working = at_work(runtime)
    holder = holder_of_token(runtime, working)
    frames = current_frames()
    actors = [
        wait_of(ref, path, working, holder, stuck_after, frames, runtime.event_loop.thread)
        for ref, path in actors_and_paths(runtime)
    ]
    system = runtime.system
    graphs = [] if system is None else system._observer.graphs()
    return WaitReport(itertools.chain(actors, *(graph.waits() for graph in graphs)))


def wait_of(
    ref: ActorRef[Any],
    path: str,
    working: Mapping[int, tuple[WorkerThread, float]],
    holder: WorkerThread | None,
    stuck_after: float,
    frames: Mapping[int, FrameType],
    loop: threading.Thread | None,
) -> WaitRecord:
    """Return why one actor waits. `frames` are those of `current_frames()`.

    `loop` is the thread of the system's event loop.
    """
    since = ref._step_since
    if since:
        seconds = max(0, time.monotonic_ns() - since) / 1e9
        return _in_message(
            path, "not awaited", "the event loop", loop, seconds, stuck_after, frames
        )
    cause = ref._wait_cause
    if cause is not None:  # before its message: an actor that waits for room has one
        return WaitRecord("actor", path, cause.reason, f"waits for {cause}")
    if ref._number in working:
        worker, seconds = working[ref._number]
        where = f"worker {worker.name}"
        return _in_message(
            path, "been in one message", where, worker.thread, seconds, stuck_after, frames
        )
    return WaitRecord("actor", path, *queued(ref, holder))


def _in_message(
    path: str,
    what: str,
    where: str,
    thread: threading.Thread | None,
    seconds: float,
    stuck_after: float,
    frames: Mapping[int, FrameType],
) -> WaitRecord:
    """Return the entry of an actor that a worker runs, or the event loop."""
    if seconds < stuck_after:
        return WaitRecord("actor", path, WaitReason.RUNNING, f"runs on {where}", seconds)
    words = f"has {what} for {seconds:.1f} s, on {where}"
    frame = None if thread is None else frames.get(thread.ident or 0)
    stack = "" if frame is None else "".join(format_stack(frame))
    return WaitRecord("actor", path, WaitReason.STUCK, words, seconds, stack)
