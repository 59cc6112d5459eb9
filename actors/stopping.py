"""How a system comes to its end."""

from __future__ import annotations

import time

from callboard._inside.sending.runtime import Runtime
from callboard.core.log import log
from callboard.core.threads.wait_queue import WaitQueue

# The time, in seconds, that the event loop and the workers have if actors took all of it.
LAST_MOMENT = 0.1


def time_left(deadline: float) -> float:
    """Return the seconds until `deadline`; a moment where that is past."""
    return max(deadline - time.monotonic(), LAST_MOMENT)


def begin_stop(runtime: Runtime) -> None:
    """Refuse new actors and tell all top-level actors to stop."""
    runtime.closing = True
    for ref in runtime.top:
        ref.stop()


def on_change(runtime: Runtime, change: WaitQueue) -> None:
    """On the worker on which the last top-level actor ended, or one's failure escalated."""
    if runtime.failure is not None and not runtime.closing:
        log.error(
            "an actor's failure stops the system", system=runtime.name, exc_info=runtime.failure
        )
        begin_stop(runtime)
    if not runtime.top:
        change.notify_all()
