"""Systems that end without stop(): garbage-collected, forked, or still open at exit."""

from __future__ import annotations

import atexit
import os
import warnings
import weakref
from functools import partial
from typing import TYPE_CHECKING, Protocol

from callboard.core.errors import DrainTimeout
from callboard.core.log import log
from callboard.diagnosis import all_actors

if TYPE_CHECKING:
    from callboard._inside.sending.runtime import Runtime


class Stoppable(Protocol):
    """The part of a system that its end needs."""

    _runtime: Runtime

    def _drain_for_signal(self) -> None:
        """Drain, if a signal wanted that."""

    def stop(self, timeout: float = ...) -> None:
        """Stop."""


# How long the interpreter's exit waits for actors to stop, in seconds.
EXIT_TIMEOUT = 2.0

# Runtimes that no system holds, whose actors have not all ended. Without this the
# collector would free actors that their workers are about to run.
_unfinished: set[Runtime] = set()

# The finalizers of systems: each is called when its system is collected without a stop.
_live: weakref.WeakKeyDictionary[Stoppable, weakref.finalize[..., Stoppable]] = (
    weakref.WeakKeyDictionary()
)


def remember(system: Stoppable, runtime: Runtime) -> None:
    """Look after a system from now on."""
    collected = _live[system] = weakref.finalize(system, _collected, runtime)
    collected.atexit = False


def forget(system: Stoppable) -> None:
    """Look no more after a system that has stopped.

    Its runtime may hold what refers to it, as the traceback of an actor's failure can: held from
    here, it would live for ever.
    """
    if (collected := _live.pop(system, None)) is not None:
        collected.detach()


def leave_behind(runtime: Runtime) -> None:
    """Keep what threads that did not end in time still use."""
    _unfinished.add(runtime)


def _collected(runtime: Runtime) -> None:
    """Stop a system without references. In whatever thread the collector runs: do not wait."""
    if runtime.forked or runtime.manual:  # no code runs its actors
        return
    was_open = not runtime.closing
    _unfinished.add(runtime)
    runtime.closing = True
    runtime.system_ref = None  # for callers that ask why: see stored_envelope.pyx
    runtime.timers.close()
    runtime.on_change = partial(_end_team, runtime)
    top = runtime.top
    for ref in top:
        ref.stop()
    if not top:
        runtime.on_change()
    if was_open:  # at the end: a filter may make it an error
        warnings.warn(
            f"the actor system {runtime.name!r} was garbage-collected before it was stopped: leave "
            "its `with` block, or call its stop()",
            ResourceWarning,
            stacklevel=1,
        )


def _end_team(runtime: Runtime) -> None:
    """End a collected system's threads, if this was its last actor."""
    if not runtime.top:
        runtime.event_loop.begin_end()
        runtime.team.tell_stopping()
        runtime.closed = True
        _unfinished.discard(runtime)


@atexit.register
def _stop_all() -> None:
    for system in list(_live):
        try:
            try:
                system._drain_for_signal()
            finally:
                system.stop(EXIT_TIMEOUT)
        except DrainTimeout as error:
            log.warning("an actor is left behind at exit", error=str(error))


def _forbid_copies() -> None:
    """Make every use of these actors an error: in a forked child the workers do not exist."""
    for system in _live:
        runtime = system._runtime
        runtime.forked = True
        for ref in all_actors(runtime):
            ref._forbid()


os.register_at_fork(after_in_child=_forbid_copies)
