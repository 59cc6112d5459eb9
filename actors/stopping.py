"""How a system comes to its end."""

from __future__ import annotations

import time
from collections.abc import Callable

from callboard._inside.sending.runtime import Runtime
from callboard.core.errors import DrainTimeout
from callboard.core.log import log
from callboard.core.threads.wait_queue import WaitQueue
from callboard.diagnosis import why_not_idle

# How long stop() waits without a number, in seconds, and the end of a `with` block at most.
STOP_TIMEOUT = 10.0
# The time, in seconds, that actors have to stop in after a drain that took all the time. Those that
# can end do so at once. With the last moment of the event loop that is half a second.
LAST_WORDS = 0.35
# The time, in seconds, that the event loop and the workers have if actors took all of it.
LAST_MOMENT = 0.1
# How often a drain looks whether its caller has given up, in seconds.
_LOOK = 0.02


def time_left(deadline: float) -> float:
    """Return the seconds until `deadline`; a moment where that is past."""
    return max(deadline - time.monotonic(), LAST_MOMENT)


def left_behind(system: str, what: str, stuck: str) -> DrainTimeout:
    """Return the error for actors that are stuck: their threads cannot be ended."""
    return DrainTimeout(f"the system {system!r} {what}; its threads are left behind\n{stuck}")


def log_left_behind(system: str, behind: DrainTimeout) -> None:
    """Log what the end of a block left behind, where something else comes out of the block."""
    log.error("actors are left behind", system=system, error=str(behind))


def drained_and_left(system: str, seconds: float, behind: DrainTimeout) -> DrainTimeout:
    """Return the one error for what held up a drain of so many seconds, and then the stop."""
    what = f"did not become idle in {seconds:g} s, and did not stop then"
    return left_behind(system, what, str(behind).partition("\n")[2])


def drain(runtime: Runtime, seconds: float, is_given_up: Callable[[], bool] | None = None) -> None:
    """Wait until nothing waits or is in work, or the caller gives up. Raises DrainTimeout."""
    deadline = time.monotonic() + seconds
    longest = seconds if is_given_up is None else _LOOK
    while not runtime.closed:
        left = max(deadline - time.monotonic(), 0.0)
        if runtime.team.wait_until_idle(min(left, longest)):
            return
        if is_given_up is not None and is_given_up():
            return
        if time.monotonic() >= deadline:
            raise DrainTimeout(
                f"the system {runtime.name!r} did not become idle in {seconds:g} s\n"
                + why_not_idle(runtime)
                + _where_recorded(runtime)
            )


def _where_recorded(runtime: Runtime) -> str:
    """Have a flight recorder write its trace, and say where."""
    system = runtime.system
    path = None if system is None else system._traces.write_for("a drain timed out")
    return "" if path is None else f"\nthe trace of what came before is in {path}"


def begin_stop(runtime: Runtime) -> None:
    """Refuse new actors and tell all top-level actors to stop."""
    runtime.closing = True
    for ref in runtime.top:
        ref.stop()
    if runtime.on_spawn is not None:
        runtime.on_spawn()  # none will come any more


def on_change(runtime: Runtime, change: WaitQueue) -> None:
    """On the worker on which the last top-level actor ended, or one's failure escalated."""
    if runtime.failure is not None and not runtime.closing:
        log.error(
            "an actor's failure stops the system", system=runtime.name, exc_info=runtime.failure
        )
        begin_stop(runtime)
    if not runtime.top:
        change.notify_all()
