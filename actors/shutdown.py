"""The shutdown of a system: it drains, stops its actors, and ends its threads."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Protocol

from callboard._inside.answers.future import Future
from callboard._inside.life import exit as _exit
from callboard._inside.sending.runtime import Runtime
from callboard.core import checks
from callboard.core.errors import CallboardError, DrainTimeout, SystemClosed
from callboard.core.log import log
from callboard.core.text import did_you_mean
from callboard.core.threads.blocking import refuse_to_block
from callboard.core.threads.wait_queue import WaitQueue
from callboard.diagnosis import why_not_idle
from callboard.in_thread import InThread, until_done
from callboard.observing.observer import Observer
from callboard.scheduling.team import obstacle_to_waiting
from callboard.signals import Signals

# How long stop() waits without a number, in seconds, and the end of a `with` block at most.
STOP_TIMEOUT = 10.0
# The time, in seconds, that actors have to stop in after a drain that took all the time. Those that
# can end do so at once. With the last moment of the event loop that is half a second.
LAST_WORDS = 0.35
# The time, in seconds, that the event loop and the workers have if actors took all of it.
LAST_MOMENT = 0.1
# How often a drain checks whether its caller has given up, in seconds.
_CHECK_PERIOD = 0.02

DONE: Future[None] = Future()
DONE.set_result(None)


class LeftSystem(Protocol):
    """A system whose `with` block is left. A subclass may override drain() and stop()."""

    def drain(self, timeout: float | None = None) -> None:
        """Wait until it is idle."""

    def adrain(self, timeout: float | None = None) -> Future[None]:
        """Return a future of that."""
        ...

    def stop(self, timeout: float = STOP_TIMEOUT) -> None:
        """Stop it."""

    def _drain_for_signal(self) -> None: ...


class Shutdown:
    """The end of one system: by a call, by the end of its `with` block, or by a signal."""

    def __init__(self, runtime: Runtime, observer: Observer) -> None:
        self._runtime = runtime
        self._observer = observer
        self.signals = Signals()
        self.leave_by: float | None = None
        """When the end of the system's `with` block is to be over, once that has begun."""
        self._inner: tuple[BaseException, float] | None = None  # the latest end of an inner block
        self._all_ended = WaitQueue()  # notified when no top-level actor is left
        runtime.on_change = partial(_on_change, runtime, self._all_ended)

    @property
    def _is_run_here(self) -> bool:
        """True in the one thread that may run the system, step by step: see `ManualSystem`."""
        return False

    @property
    def only_asks(self) -> bool:
        """True where a stop does not wait for another thread: in an actor, or in its own thread."""
        return self._is_run_here or obstacle_to_waiting(self._runtime.team) is not None

    def refuse_worker(self, call: str) -> None:
        """Raise CallboardError where a call would wait for the thread that it is made in."""
        obstacle = obstacle_to_waiting(self._runtime.team)
        if obstacle is not None:
            raise CallboardError(f"{call} {obstacle}")

    # --- draining --------------------------------------------------------------------------------

    def drain(self, timeout: float | None = None) -> None:
        """Wait until nothing waits or is in work. Raises DrainTimeout."""
        self._runtime.refuse_fork()
        seconds = self._drain_seconds(timeout)
        self.refuse_worker("drain()")
        if not self._runtime.closed and not self._runtime.team.wait_until_idle(0.0):
            refuse_to_block("drain()", "await adrain()")
            self._drain(seconds)

    def adrain(self, timeout: float | None = None) -> Future[None]:
        """Drain in a thread, and return a future of that."""
        self._runtime.refuse_fork()
        seconds = self._drain_seconds(timeout)
        self.refuse_worker("adrain()")
        if not self._is_run_here:
            wait = lambda future: self._drain(seconds, lambda: future.is_given_up)  # noqa: E731
            return InThread(f"{self._runtime.name}-drain", wait)
        drained: Future[None] = Future()
        try:
            self.drain(seconds)
            drained.set_result(None)
        except DrainTimeout as error:
            drained.set_exception(error)
        return drained

    def _drain_seconds(self, timeout: float | None) -> float:
        if timeout is None:
            return self._runtime.config.drain_timeout
        return checks.seconds("the timeout of drain()", timeout)

    def _drain(self, seconds: float, is_given_up: Callable[[], bool] | None = None) -> None:
        """Wait until nothing waits or is in work, or the caller gives up. Raises DrainTimeout."""
        runtime = self._runtime
        deadline = time.monotonic() + seconds
        longest = seconds if is_given_up is None else _CHECK_PERIOD
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
                    + self._where_recorded()
                )

    def _where_recorded(self) -> str:
        """Have a flight recorder write its trace, and say where."""
        path = self._observer.traces.write_for("a drain timed out")
        return "" if path is None else f"\nthe trace of what came before is in {path}"

    def install_signal_handlers(self, signals: Iterable[int]) -> None:
        """Have signals end the `with` block. Raises SystemClosed, and like `Signals.install()`."""
        self._runtime.refuse_fork()
        if self._runtime.closed:
            name = self._runtime.name
            raise SystemClosed(f"the system {name!r} was stopped: it handles no signals")
        self.signals.install(signals)

    def drain_for_signal(self, system: LeftSystem) -> None:
        """Drain if one signal has come, and not yet the second one that ends it."""
        if self.signals.count == 1:
            left = None if self.leave_by is None else self.leave_by - time.monotonic()
            system.drain(None if left is None else max(left, 0.0))

    # --- stopping --------------------------------------------------------------------------------

    def join(self, timeout: float | None) -> bool:
        """Wait until all actors have ended, and return whether they have."""
        self._runtime.refuse_fork()
        seconds = checks.timeout("the timeout of join()", timeout)
        self.refuse_worker("join()")
        if self.wait_ended(0.0):
            return True
        refuse_to_block("join()", "await ajoin()")
        return self.wait_ended(seconds)

    def ajoin(self, timeout: float | None) -> Future[bool]:
        """Wait in a thread until all actors have ended, and return a future of that."""
        self._runtime.refuse_fork()
        seconds = checks.timeout("the timeout of join()", timeout)
        self.refuse_worker("ajoin()")
        if self._is_run_here or self.wait_ended(0.0):
            joined: Future[bool] = Future()
            joined.set_result(self.join(seconds))
            return joined
        deadline = None if seconds is None else time.monotonic() + seconds

        def wait(future: InThread[bool]) -> bool:
            while not future.is_given_up:
                left = _CHECK_PERIOD if deadline is None else deadline - time.monotonic()
                if self.wait_ended(min(max(left, 0.0), _CHECK_PERIOD)):
                    return True
                if left <= 0:
                    break
            return False

        return InThread(f"{self._runtime.name}-join", wait)

    def wait_ended(self, timeout: float | None) -> bool:
        """Wait until all actors have ended, whatever thread that holds up."""
        return self._all_ended.wait_for(lambda: not self._runtime.top, timeout)

    def stop(self, timeout: float) -> None:
        """Stop all actors, then the event loop and the workers. Raises DrainTimeout."""
        seconds = checks.seconds("the timeout of stop()", timeout)
        runtime = self._runtime
        if not (runtime.forked or runtime.closed or self.only_asks):
            refuse_to_block("stop()", "await astop()")
        self.stop_blocking(seconds)

    def astop(self, timeout: float) -> Future[None]:
        """Stop in a thread, and return a future of that."""
        seconds = checks.seconds("the timeout of stop()", timeout)
        if self._runtime.forked or self._runtime.closed or self.only_asks:
            self.stop(seconds)
            return DONE
        self.signals.restore()  # while this is the main thread, which alone can do so
        return self._stop_in_thread(seconds)

    def _stop_in_thread(self, seconds: float) -> InThread[None]:
        system = self._runtime.system  # the thread refers to it: it is not collected

        def stop(_: InThread[None], system: object = system) -> None:
            self.stop_blocking(seconds)

        return InThread(f"{self._runtime.name}-stop", stop)

    def stop_blocking(self, seconds: float) -> None:
        """Stop, whatever thread that holds up."""
        deadline = time.monotonic() + seconds
        runtime = self._runtime
        if runtime.forked or runtime.closed:
            return
        self._warn_of_unmet_options()
        _begin_stop(runtime)
        for graph in self._observer.graphs():
            graph.leave_waits()
        if obstacle_to_waiting(runtime.team) is not None:
            return
        ended = self.wait_ended(seconds)
        stuck = "" if ended else why_not_idle(runtime)
        runtime.timers.close()
        runtime.event_loop.close(_time_left(deadline))
        team = runtime.team
        team.tell_stopping()
        if ended and not team.end(_time_left(deadline)):
            ended, stuck = False, why_not_idle(runtime)
        runtime.closed = True
        system = runtime.system
        with ExitStack() as ends:  # all are called, the last first, also if Ctrl-C comes out of one
            if not ended:
                ends.callback(_exit.leave_behind, runtime)
            ends.callback(self.signals.restore)
            if system is not None:
                ends.callback(_exit.forget, system)
            ends.callback(self._observer.close)
            for graph in self._observer.graphs():
                ends.callback(graph.end_with_system)
        log.info("system stopped", system=runtime.name)
        if not ended:
            raise _left_behind(runtime.name, f"did not stop in {seconds:.3g} s", stuck)

    def _warn_of_unmet_options(self) -> None:
        """Log which options of the configuration were for actors that were never spawned."""
        runtime = self._runtime
        names = [name for _, name in runtime.named]
        for entry in runtime.config.unmet if not runtime.closing else ():
            hint = did_you_mean(entry.partition(".")[2], names)
            log.warning(
                f"no actor was spawned for {entry} of the configuration{hint}", system=runtime.name
            )

    # --- leaving blocks --------------------------------------------------------------------------

    @contextmanager
    def leaving(self, error: BaseException | None) -> Iterator[float]:
        """Leave an inner `with` block by an error, and yield the seconds that its end may take.

        They are a part of those of the system's own block, if the same error leaves that, too.
        """
        before = self._time_taken(error)
        began = time.monotonic()
        try:
            yield max(STOP_TIMEOUT - before, LAST_WORDS)
        finally:
            taken = before + time.monotonic() - began
            if error is not None and taken > LAST_MOMENT:  # else it is not kept, nor its frames
                self._inner = error, taken

    def _time_taken(self, error: BaseException | None) -> float:
        """Return how many seconds the ends of inner blocks have taken, which the error left."""
        inner, self._inner = self._inner, None
        return inner[1] if inner is not None and inner[0] is error else 0.0

    def _begin_to_leave(self, error: BaseException | None) -> tuple[float, float]:
        """Return when the end of the block is to be over, and how long a stop may take at most."""
        taken = self._time_taken(error)
        deadline = time.monotonic() + self._runtime.config.drain_timeout - taken
        self.leave_by = deadline
        return deadline, STOP_TIMEOUT - taken

    def leave(self, system: LeftSystem, error: BaseException | None) -> None:
        """Drain, unless the block ended by `error`, then stop. Raises one DrainTimeout for both."""
        runtime = self._runtime
        if runtime.forked:
            return
        if not self.only_asks:
            refuse_to_block("the end of `with`", "await astop(), and use `async with`")
        deadline, longest = self._begin_to_leave(error)
        late: DrainTimeout | None = None
        leaving = error
        try:
            try:  # here, and not in a function, at whose begin a signal could raise
                if error is None:
                    system.drain()
            except (KeyboardInterrupt, SystemExit):
                system._drain_for_signal()
                raise
            else:
                system._drain_for_signal()
        except DrainTimeout as timeout:
            late = timeout
        except BaseException as raised:
            leaving = raised
            raise
        finally:
            try:
                system.stop(_stop_seconds(deadline, longest))
            except DrainTimeout as behind:
                late = self._one_error(leaving, late, behind)
        self._raise_outcome(error, late)

    async def leave_soon(self, system: LeftSystem, error: BaseException | None) -> None:
        """Like leave(), in a coroutine. A cancelled drain stops at once.

        After one signal, it drains whatever the error is: `asyncio.run()` cancels the task then.
        """
        if self._runtime.forked:
            return
        deadline, longest = self._begin_to_leave(error)
        drained: Future[None] = DONE
        late: DrainTimeout | None = None
        leaving = error
        try:
            if error is None or self.signals.count == 1:
                drained = system.adrain()
                await drained
        except DrainTimeout as timeout:
            late = timeout
        except BaseException as raised:
            leaving = raised
            raise
        finally:
            if not isinstance(leaving, GeneratorExit):
                await until_done(drained)  # at once, where it was given up
            try:
                await self._stop_whatever_cancels(_stop_seconds(deadline, longest), leaving)
            except DrainTimeout as behind:
                late = self._one_error(leaving, late, behind)
        self._raise_outcome(error, late)

    async def _stop_whatever_cancels(self, seconds: float, error: BaseException | None) -> None:
        """Stop, whatever cancels the wait for it. `error` ends the block, if there is one."""
        if self.only_asks or isinstance(error, GeneratorExit):
            self.stop_blocking(seconds)
            return
        stopped = self._stop_in_thread(seconds)
        cancellation = await until_done(stopped)
        if cancellation is None:
            stopped.result()
            return
        late = stopped.exception()
        if isinstance(late, DrainTimeout):
            _log_left_behind(self._runtime.name, late)
        raise cancellation

    def _one_error(
        self, leaving: BaseException | None, late: DrainTimeout | None, behind: DrainTimeout
    ) -> DrainTimeout | None:
        """Return the one error for what held up a drain, if that was `late`, and then the stop.

        The log has it, and no error is returned, where something else leaves the block.
        """
        name = self._runtime.name
        if leaving is not None:
            _log_left_behind(name, behind)
            return late
        if late is None:
            raise behind
        seconds = self._runtime.config.drain_timeout
        what = f"did not become idle in {seconds:g} s, and did not stop then"
        return _left_behind(name, what, str(behind).partition("\n")[2])

    def _raise_outcome(self, error: BaseException | None, late: DrainTimeout | None) -> None:
        if late is not None:
            raise late
        if error is None and self._runtime.failure is not None:
            raise self._runtime.failure


def _time_left(deadline: float) -> float:
    """Return the seconds until `deadline`; a moment where that is past."""
    return max(deadline - time.monotonic(), LAST_MOMENT)


def _stop_seconds(deadline: float, longest: float) -> float:
    """Return how long the stop at the end of a block may take."""
    return max(min(deadline - time.monotonic(), longest), LAST_WORDS)


def _left_behind(system: str, what: str, stuck: str) -> DrainTimeout:
    """Return the error for actors that are stuck: their threads cannot be ended."""
    return DrainTimeout(f"the system {system!r} {what}; its threads are left behind\n{stuck}")


def _log_left_behind(system: str, behind: DrainTimeout) -> None:
    """Log what the end of a block left behind, where something else comes out of the block."""
    log.error("actors are left behind", system=system, error=str(behind))


def _begin_stop(runtime: Runtime) -> None:
    """Refuse new actors and tell all top-level actors to stop."""
    runtime.closing = True
    for ref in runtime.top:
        ref.stop()
    if runtime.on_spawn is not None:
        runtime.on_spawn()  # no more will come


def _on_change(runtime: Runtime, all_ended: WaitQueue) -> None:
    """On the worker on which the last top-level actor ended, or one's failure escalated."""
    if runtime.failure is not None and not runtime.closing:
        log.error(
            "an actor's failure stops the system", system=runtime.name, exc_info=runtime.failure
        )
        _begin_stop(runtime)
    if not runtime.top:
        all_ended.notify_all()
