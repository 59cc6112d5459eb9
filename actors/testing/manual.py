"""A system without threads, which the test runs step by step."""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from types import TracebackType
from typing import Any, Literal, NamedTuple

from callboard._inside.sending.ref import ActorRef
from callboard.core import checks
from callboard.core.errors import DrainTimeout
from callboard.core.text import safe_repr
from callboard.diagnosis import why_not_idle
from callboard.scheduling.config import Config
from callboard.scheduling.replay import ManualTeam, ManualWorker, Seeded
from callboard.shutdown import Shutdown
from callboard.system import ActorSystem
from callboard.testing.manual_loop import ManualEventLoop
from callboard.testing.probe import Probe
from callboard.timers import ManualTimers

# How many of the latest messages an error shows.
_SHOWN = 10


class Taken(NamedTuple):
    """An entry of a trace: an actor took a message out of its mailbox."""

    path: str
    message: str  # its repr()

    def __str__(self) -> str:
        return f"{self.path} <- {self.message}"


class ManualShutdown(Shutdown):
    """The end of a ManualSystem: what would wait for other threads runs the system instead."""

    @property
    def _system(self) -> Any:
        return self._runtime.system

    @property
    def _is_run_here(self) -> bool:
        """True in the thread that made the system."""
        return bool(self._system._is_run_here)

    def drain(self, timeout: float | None = None) -> None:
        """Run until nothing is ready and no actor is in the middle of a message.

        The clock goes on for an actor that waits, by `timeout` seconds at most.
        """
        runtime = self._runtime
        runtime.refuse_fork()
        self.refuse_worker("drain()")
        system = self._system
        seconds = runtime.config.drain_timeout if timeout is None else timeout
        if not system._run_until(lambda: system._worker.is_team_idle, seconds):
            raise DrainTimeout(
                f"{system!r} did not become idle in {seconds} s of its clock\n"
                + why_not_idle(runtime)
            )

    def join(self, timeout: float | None) -> bool:
        """Run until all actors have ended."""
        self._runtime.refuse_fork()
        self.refuse_worker("join()")
        return bool(self._system._run_until(lambda: not self._runtime.top, timeout))

    def wait_ended(self, timeout: float | None) -> bool:
        """Take all steps that there are, whatever fails in them."""
        if self._is_run_here:
            self._system._take_all_steps()
        return not self._runtime.top


class ManualSystem(ActorSystem):
    """An actor system without threads: the thread that made it runs it, and only when told to.

    Whatever `spawn` and `tell` start waits until `run_until_idle()`, `step()`, `run_until()`,
    `advance()` or `drain()`, or until the test waits for an ask's `result()`. All actors run on
    this one worker, even those spawned with `dedicated=True`. Actors with `event_loop=True` have an
    event loop on the same thread, with the same clock, but without sockets and threads.

    The clock is logical and starts at 0. Timers are due when `advance()` gets there, or when
    something waits with a timeout, such as `drain()` and `join()`. Handling a message takes no
    time.

    Args:
        seed: Random numbers from this seed choose the next ready actor: one seed is one
            interleaving, the same every time and everywhere.
        quantum: The most messages that an actor handles in one step; with 1, every interleaving of
            messages is possible.
        max_steps: The number of steps after which a call that runs the system fails, so that actors
            which always have work do not hang the test.
        trace: Keep the messages handled so far in `trace`.
        failures: With "raise", the step in which an actor fails raises the actor's exception, after
            its supervisor has decided, and so do the calls that run steps. With "log" it is in the
            log and in `dead_letters.failures`, as in a program. Expected errors are not failures.
    """

    _shutdown_class = ManualShutdown

    def __init__(
        self,
        seed: int = 0,
        *,
        name: str = "manual",
        quantum: int = 1,
        max_steps: int = 1_000_000,
        drain_timeout: float = 30.0,
        context: str = "own",
        trace: bool = True,
        failures: Literal["log", "raise"] = "log",
    ) -> None:
        self.seed = checks.whole("seed", seed, -(2**63), 2**64 - 1)
        self.max_steps = checks.whole("max_steps", max_steps)
        checks.flag("trace", trace)
        checks.one_of("failures", failures, ("log", "raise"))
        self.config = Config.load(
            name=name,
            workers=1,
            threading="assigned",
            quantum=quantum,
            drain_timeout=drain_timeout,
            context=context,
        )
        self._trace: list[Taken] = []
        self._timers = ManualTimers()
        team = ManualTeam(False)
        self._worker = ManualWorker(team, Seeded(seed), quantum, name)
        self._event_loop = ManualEventLoop(self._timers, self._worker)
        self._chance = random.Random(seed)
        if trace:
            self._worker.trace = partial(_note, self._trace)
        self._failed: deque[BaseException] = deque()  # in the step at hand
        self._open(team, self._timers, manual=True)  # from here on the interpreter's exit stops it
        self._runtime.event_loop = self._event_loop
        if failures == "raise":
            self._runtime.dead_letters._on_failure = self._failed.append

    # --- running ---------------------------------------------------------------------------------

    def probe(self, name: str | None = None) -> Probe:
        """Spawn a probe: a receiver that keeps its messages."""
        return Probe(self, name)

    def step(self) -> bool:
        """Dispatch one ready actor, or call one callback of the event loop, chosen by the seed.

        If none is ready, break a circle of full channels. Return False if there was nothing to do.

        Raises CallboardError in a thread other than the one that made the system, and the first
        failure of an actor if the system was made with `failures="raise"`.
        """
        is_done = self._take_step()
        if self._failed:
            error = self._failed.popleft()
            self._failed.clear()
            raise error
        return is_done

    def _take_step(self) -> bool:
        loop, circles = self._event_loop, self._runtime.circles
        if loop.is_ready and self._chance.random() < 0.5 and loop.step():
            return True
        return self._worker.step_once() or loop.step() or (circles is not None and circles.look())

    def run_until_idle(self, max_steps: int | None = None) -> int:
        """Run until no actor is ready, and return the number of steps. The clock stands still.

        Raises DrainTimeout if that takes more than `max_steps` steps.
        """
        if max_steps is not None:
            checks.whole("max_steps", max_steps)
        steps = self._steps(max_steps)
        taken = 0
        while self.step():
            taken = next(steps)
        return taken

    def run_until(self, predicate: Callable[[], bool], timeout: float = 0.0) -> bool:
        """Run until `predicate()` is true, and return whether it is.

        It is checked before every step. When nothing is ready the clock advances to the next timer,
        by at most `timeout` seconds in all.

        Raises DrainTimeout if that takes more than the system's `max_steps`.
        """
        self._shutdown.refuse_worker("run_until()")
        return self._run_until(predicate, timeout)

    def _run_until(self, predicate: Callable[[], bool], timeout: float | None) -> bool:
        seconds = checks.timeout("a timeout", timeout)
        deadline = math.inf if seconds is None else self.now + seconds
        steps = self._steps()
        while not predicate():
            next(steps)
            if self.step():
                continue
            due = self._timers.next_due()
            if due is None or due > deadline:
                if deadline < math.inf:
                    self._timers.advance_to(deadline)
                return False
            self._timers.advance_to(due)
        return True

    def _steps(self, limit: int | None = None) -> Iterator[int]:
        """Count the steps of a run, from 1 on, and end it by DrainTimeout if there are too many."""
        most = self.max_steps if limit is None else limit
        yield from range(1, most + 1)
        raise DrainTimeout(f"{self!r} was not idle after {most} steps; {self._latest()}")

    @property
    def _is_run_here(self) -> bool:
        """True in the thread that made the system, the only one that may run it."""
        return self._worker.is_here

    # --- time ------------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """The logical clock, in seconds since the system was made."""
        return self._timers.now()

    def advance(self, seconds: float) -> None:
        """Advance the clock: fire each timer at its time, and run until idle after each."""
        seconds = checks.seconds("the time that passes", seconds)
        self._shutdown.refuse_worker("advance()")
        end = self.now + seconds
        steps = self._steps()
        self.run_until_idle()
        while (due := self._timers.next_due()) is not None and due <= end:
            self._timers.advance_to(due)
            self.run_until_idle()
            next(steps)
        self._timers.advance_to(end)

    # --- what happened ---------------------------------------------------------------------------

    @property
    def trace(self) -> list[Taken]:
        """The messages that actors have taken from mailboxes so far, in order, with their paths.

        The traces of two runs with the same seed are equal if neither the actors' behaviour nor the
        messages' repr() depends on anything else.
        """
        return list(self._trace)

    def _latest(self) -> str:
        if self._worker.trace is None:
            return "it keeps no trace"
        if not self._trace:
            return "no message was handled"
        shown = ", ".join(map(str, self._trace[-_SHOWN:]))
        return f"the latest {min(_SHOWN, len(self._trace))} of {len(self._trace)} messages: {shown}"

    def _take_all_steps(self) -> None:
        steps = self._steps()
        while self._take_step():  # a failure does not keep the system from its end
            next(steps)
        self._failed.clear()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            error.add_note(f"{self!r}: {self._latest()}")
        super().__exit__(kind, error, trace)

    def __repr__(self) -> str:
        state = ", stopped" if self._runtime.closed else ""
        return f"<ManualSystem {self.name!r}, seed {self.seed}, at {self.now:g} s{state}>"


def _note(trace: list[Taken], ref: ActorRef[Any], message: object) -> None:
    trace.append(Taken(ref.path, safe_repr(message)))
