"""The actor system: it spawns actors, becomes idle, and stops."""

from __future__ import annotations

import os
import signal
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from types import BuiltinFunctionType, FunctionType, TracebackType
from typing import Any, Protocol, Self, TypeVar

from callboard._inside.directory import Directory
from callboard._inside.later import Scheduled
from callboard._inside.life import exit as _exit
from callboard._inside.pooling import Pooling
from callboard._inside.receiving.event_loop import EventLoop
from callboard._inside.sending.ref import ActorRef
from callboard._inside.sending.runtime import Runtime
from callboard._inside.spawn import Spawning, spawn
from callboard.core import checks
from callboard.core.errors import (
    CallboardError,
    DrainTimeout,
    GraphError,
    PolicyError,
    SystemClosed,
)
from callboard.core.handles import CopiedAsItself
from callboard.core.log import log
from callboard.core.text import did_you_mean, safe_repr
from callboard.core.threads.blocking import refuse_to_block
from callboard.core.threads.green import refuse_green_threads
from callboard.core.threads.interpreter import has_gil
from callboard.core.threads.wait_queue import WaitQueue
from callboard.dead_letters import DeadLetters
from callboard.diagnosis import all_actors, why_not_idle
from callboard.hosting import Hosted
from callboard.mailboxes import BoundedMailbox
from callboard.observing.observed import Observed
from callboard.scheduling.config import Config
from callboard.scheduling.placement import rebalance
from callboard.scheduling.team import Team, obstacle_to_waiting
from callboard.scheduling.tracing.flight_recorder import FlightRecorder
from callboard.signals import Signals
from callboard.stopping import (
    LAST_WORDS,
    STOP_TIMEOUT,
    begin_stop,
    drain,
    drained_and_left,
    left_behind,
    log_left_behind,
    on_change,
    time_left,
)
from callboard.supervision import Supervision
from callboard.timers import Timers
from callboard.tuned import check_classes
from callboard.workforce import start_workers

R = TypeVar("R", covariant=True)


class Runnable(Protocol[R]):
    """A graph as a system sees it."""

    def _run_in(self, system: ActorSystem, **options: Any) -> R: ...


class ActorSystem(Spawning, Pooling, Hosted, Observed, Directory, Scheduled, CopiedAsItself):
    """Workers, and the actors that they run. A context manager: leaving it drains, then stops.

    That takes `drain_timeout` seconds in all, and half a second more at most, in which actors stop
    that can. Then one DrainTimeout says what is stuck. Leaving it by an exception does not drain:
    waiting messages become dead letters. It waits for messages in work, for 10 s at most, or for
    `drain_timeout` if that is less; the exception goes on, and the log says what is stuck. After
    `install_signal_handlers()` the first signal drains, too. In a coroutine use `async with`; if
    that is cancelled while it is left, it stops so, too.

    A system that is garbage-collected, or open when the interpreter exits, stops without draining.
    In a forked child its copy raises ForkedSystem.
    """

    def __init__(
        self,
        name: str = "callboard",
        *,
        workers: int | str | tuple[int, int] | None = None,
        elasticity: Mapping[str, Any] | None = None,
        threading: str | None = None,
        placement: Any = None,
        priority: Any = "fifo",
        quantum: int = 64,
        time_slice: float = 0.005,
        monitoring: str = "off",
        monitored: Sequence[type | str] | None = None,
        trace: str | os.PathLike[str] | FlightRecorder | None = None,
        observable: bool = False,
        pin: bool | Sequence[int] = False,
        drain_timeout: float = 30.0,
        context: str = "own",
        config: Any = None,
    ) -> None:
        """Make `workers` workers; without a number, one for each core that the process may use.

        With `workers="elastic"`, or `(least, most)`, the system finds out how many should run, and
        suspends the others: see `docs/elasticity.md`. `elasticity` is a table with `period` in
        seconds, `ceiling` from 0 to 1, and `remember`, the path of a file.

        `threading` says which of them runs an actor. `dynamic`, the default: the worker that wakes
        it, and an idle worker takes actors from busy ones. `assigned`, the default where there is a
        `placement`: the one that the policy chose, until `rebalance()`. A worker has a thread from
        the start, except where it could only wait for the interpreter's lock. On a build that has
        one, all workers but the first start with the first native or placed actor.

        `placement` and `priority` are policies or names of policies. `quantum` is the most messages
        that one dispatch may take, and `time_slice` the time in seconds after which it begins no
        more of them. `monitoring` is a level (`off`, `times`, `mailboxes`, `channels`, `workers`),
        and `monitored` are the classes of the actors in traces; None: all. `trace` is the path of
        a file for a trace of all that runs, or a FlightRecorder; with it `monitoring` is `times` at
        least. With `observable` the commands `top`, `dashboard`, `info`, `tree` and `dump` of
        `callboard` may look into the system, and it keeps its latest 100 dead letters. `pin` ties
        each worker to a core. `drain_timeout` is in seconds. `context` says which context variables
        actors see: see `spawn`. `config` is a dict or the path of a TOML file, whose settings win
        over the keywords, so that an operator can tune without touching code.

        Raises ConfigError, OSError where a trace cannot be written, and CallboardError where gevent
        or eventlet has replaced threads.
        """
        refuse_green_threads("an ActorSystem")
        self.config = Config.load(
            config,
            mailbox=BoundedMailbox,
            supervision=Supervision,
            name=name,
            workers=workers,
            elasticity=elasticity,
            threading=threading,
            placement=placement,
            priority=priority,
            quantum=quantum,
            time_slice=time_slice,
            monitoring=monitoring,
            monitored=monitored,
            trace=trace,
            observable=observable,
            pin=pin,
            drain_timeout=drain_timeout,
            context=context,
        )
        check_classes(self.config.classes)
        token = self.config.workers > 1 and has_gil()  # its holder runs Python actors
        self._open(Team(token), Timers(self.config.name))
        try:
            self._traces.begin(self.config.trace)
            self._open_endpoint()
            start_workers(self._runtime, self.config)
        except (CallboardError, OSError):
            self._runtime.closed = True
            self._end_observing()
            _exit.forget(self)
            raise
        log.info("system started", system=self.config.name, workers=self.config.workers)

    def _open(self, team: Team, timers: Timers, *, manual: bool = False) -> None:
        config = self.config
        letters = DeadLetters(config.name)
        runtime = Runtime(team, config.name, letters, timers, config, config.quantum, manual)
        self._runtime = runtime
        self._observe(runtime)
        self._change = WaitQueue()  # notified when no top-level actor is left
        self._signals = Signals()
        self._leave_by: float | None = None  # when the `with` block's end is to be over
        runtime.placement = config.placement_policy()
        runtime.counted = config.counted
        runtime.tuned = config.tuned
        if config.monitoring != "off":
            runtime.records = self._records
        runtime.notes_channels = config.monitoring in ("channels", "workers")
        runtime.carrying = config.context == "sender"
        team.observe(config.monitoring, runtime.placement.timed)
        team.time_slice = 0.0 if manual else config.time_slice  # a logical clock stands still
        runtime.event_loop = EventLoop(config.name)
        runtime.system_ref = weakref.ref(self)
        runtime.spawner = partial(spawn, runtime)
        runtime.on_change = partial(on_change, runtime, self._change)
        _exit.remember(self, runtime)

    # --- running ---------------------------------------------------------------------------------

    def run(
        self,
        graph: Runnable[R],
        *,
        threading: Any = None,
        placement: Any = None,
        policy: Any = None,
        batch_size: int | None = None,
        window: int = 256,
        time_slice: float = 0.0005,
        markers: int = 64,
        hot_keys: int = 0,
        restore: Any = None,
    ) -> R:
        """Start a graph of streams in this system, and return its Run.

        - `threading`: the model of operators that have none by `stream.run_on()`. The default is
          the configuration's, else `dynamic`. Each has the same results, order and errors.

          - `dynamic`: any worker runs any operator, a stateful one in one at a time.
          - `manual`: the thread that calls `send()` and `finish()`, always the same one or the same
            actor, runs all operators. Behind `stream.new_thread()` another thread takes over.
          - `dedicated`: each operator has a thread of its own.
          - `assigned`: each operator lives on a worker, as `placement` says, until
            `run.rebalance()` moves it.
        - `placement`: the policy, or the name of one, that assigns operators: see `spawn`. The
          default is the configuration's, else `round_robin`.
        - `policy`: the heuristic that chooses among `dynamic` operators; the default is the
          configuration's, else `last_in_pipeline`.
        - `batch_size`: the most rows that go through the graph together. By default there are 512,
          and fewer where an operator takes more than 4 µs for a row, so that a batch takes it 2 ms.
          Smaller batches have a lower latency, larger ones a lower cost.
        - `window`: how many batches may be on their way, a power of two. It bounds memory.
        - `time_slice`: how long a worker stays with an operator, in seconds.
        - `markers`: the latency of one of so many batches is measured; 0 measures none.
        - `hot_keys`: the statistics of keyed operators in Python have so many of the keys that come
          most often.
        - `restore`: the `Snapshot` that the run goes on with, the path of one, or `SnapshotStore`,
          a directory of them.

        Raises ConfigError for invalid values, GraphError for anything but a graph, and
        SnapshotError for a snapshot that is broken, or of another graph.
        """
        self._runtime.refuse_fork()
        if self._runtime.closed:
            raise SystemClosed(f"the system {self.name!r} was stopped: it runs no graph")
        if not hasattr(type(graph), "_run_in"):
            is_function = isinstance(graph, FunctionType | BuiltinFunctionType | type)
            hint = ": make it a box, with callboard.nets.box" if is_function else ""
            raise GraphError(
                "run() takes a net, or a graph, which a sink such as collect() makes of a stream, "
                f"not {safe_repr(graph)}{hint}"
            )
        return graph._run_in(
            self,
            threading=threading,
            placement=placement,
            policy=policy,
            batch_size=batch_size,
            window=window,
            time_slice=time_slice,
            markers=markers,
            hot_keys=hot_keys,
            restore=restore,
        )

    @property
    def name(self) -> str:
        """The name given at the start."""
        return self.config.name

    @property
    def actors(self) -> list[ActorRef[Any]]:
        """The top-level actors, in the order of their spawning."""
        return self._runtime.top

    @property
    def dead_letters(self) -> DeadLetters:
        """The messages that were told and not handled."""
        return self._runtime.dead_letters

    @property
    def is_closed(self) -> bool:
        """True from the moment when the system was told to stop."""
        return self._runtime.closing

    # --- tuning ----------------------------------------------------------------------------------

    def rebalance(self, policy: Any = None) -> int:
        """Place all live actors anew, by a placement policy or the name of one; return how many
        move. Without `policy`, the system's.

        An actor that moves does so when it becomes ready next, or after the dispatch in work. No
        message is lost or reordered (see `WorkerThread.take_over`). Actors with a worker of their
        own stay. Raises PolicyError, ConfigError.
        """
        self._runtime.refuse_fork()
        chosen = self.config.placement_policy(policy)
        if self._runtime.team.steals:
            raise PolicyError(
                f"the actors of {self.name!r} cannot be arranged by {safe_repr(chosen)}: under "
                "dynamic threading they run where they are woken; use threading='assigned'"
            )
        workers = self._runtime.team.workers
        moves = rebalance(list(all_actors(self._runtime)), workers, chosen)
        for actor, worker in moves:
            worker.take_over(actor)
        return len(moves)

    # --- becoming idle ---------------------------------------------------------------------------

    def drain(self, timeout: float | None = None) -> None:
        """Wait until no message, and no row of a run, waits or is in work anywhere.

        Timers that are not due yet do not count. `timeout` is in seconds; without it, the system's
        `drain_timeout`. Raises DrainTimeout, which says which actors are in the way, since when,
        and where in their code.
        """
        self._runtime.refuse_fork()
        seconds = self._time_of_drain(timeout)
        self._refuse_worker("drain()")
        if not self._runtime.closed and not self._runtime.team.wait_until_idle(0.0):
            refuse_to_block("drain()", "await adrain()")
            drain(self._runtime, seconds)

    def join(self, timeout: float | None = None) -> bool:
        """Wait until all actors have stopped, or until the failure of one has stopped the system.

        Returns False after `timeout` seconds without that; None waits for ever.
        """
        self._runtime.refuse_fork()
        seconds = checks.timeout("the timeout of join()", timeout)
        self._refuse_worker("join()")
        if self._wait_ended(0.0):
            return True
        refuse_to_block("join()", "call it in a thread, by asyncio.to_thread()")
        return self._wait_ended(seconds)

    def _run_until(self, predicate: Callable[[], bool], timeout: float | None) -> bool:
        """Run until `predicate()` is true, where `is_run_here` is."""
        raise NotImplementedError

    def stop(self, timeout: float = STOP_TIMEOUT) -> None:
        """Stop all actors after the messages in work, then the event loop and the workers.

        Messages that still wait become dead letters. A call from an actor only asks for the stop,
        and returns. It takes little more than `timeout` seconds at most. Raises DrainTimeout if an
        actor, or a worker, does not come back by then; its thread is left behind. In a coroutine
        use `astop()`: this raises WouldBlock.
        """
        seconds = checks.seconds("the timeout of stop()", timeout)
        runtime = self._runtime
        if not (runtime.forked or runtime.closed or self._only_asks_for_stop):
            refuse_to_block("stop()", "await astop()")
        self._stop(seconds)

    def _stop(self, seconds: float) -> None:
        """Stop, whatever thread that holds up."""
        deadline = time.monotonic() + seconds
        runtime = self._runtime
        if runtime.forked or runtime.closed:
            return
        self._tell_unmet()
        begin_stop(runtime)
        for graph in self._graphs():
            graph.leave_waits()
        if obstacle_to_waiting(runtime.team) is not None:
            return
        ended = self._wait_ended(seconds)
        stuck = "" if ended else why_not_idle(runtime)
        runtime.timers.close()
        runtime.event_loop.close(time_left(deadline))
        team = runtime.team
        team.tell_stopping()
        if ended and not team.end(time_left(deadline)):
            ended, stuck = False, why_not_idle(runtime)
        runtime.closed = True
        with ExitStack() as ends:  # all are called, the last first, also if Ctrl-C comes out of one
            if not ended:
                ends.callback(_exit.leave_behind, runtime)
            ends.callback(self._signals.restore)
            ends.callback(_exit.forget, self)
            ends.callback(self._end_observing)
            for graph in self._graphs():
                ends.callback(graph.end_with_system)
        log.info("system stopped", system=self.name)
        if not ended:
            raise left_behind(self.name, f"did not stop in {seconds:.3g} s", stuck)

    def _tell_unmet(self) -> None:
        """Say which options of the configuration were for actors that never came."""
        names = [name for _, name in self._runtime.named]
        for entry in self.config.unmet if not self.is_closed else ():
            hint = did_you_mean(entry.partition(".")[2], names)
            log.warning(f"no actor came for {entry} of the configuration{hint}", system=self.name)

    def _wait_ended(self, timeout: float | None) -> bool:
        return self._change.wait_for(lambda: not self._runtime.top, timeout)

    def install_signal_handlers(
        self, signals: Iterable[int] = (signal.SIGTERM, signal.SIGINT)
    ) -> None:
        """End the program's `with` block at a signal, after the messages in flight are handled.

        The first signal raises in the main thread, in join(), in result() or in the program's own
        code: SIGINT KeyboardInterrupt, others SystemExit with 128 and the signal's number. Leaving
        the `with` block by it drains, for the system's `drain_timeout` at most, then stops. Without
        such a block the interpreter's exit does so. A second signal ends that drain, and stops at
        once. stop() gives the signals back to the handlers from before.

        Raises CallboardError outside the main thread, and ConfigError for a signal that cannot be
        handled.
        """
        self._runtime.refuse_fork()
        if self._runtime.closed:
            raise SystemClosed(f"the system {self.name!r} was stopped: it heeds no signals")
        self._signals.install(signals)

    def _drain_for_signal(self) -> None:
        """Drain if one signal has come, and not yet the second one that ends it."""
        if self._signals.count == 1:
            left = None if self._leave_by is None else self._leave_by - time.monotonic()
            self.drain(None if left is None else max(left, 0.0))

    def __enter__(self) -> Self:
        if not self.is_run_here:
            try:
                refuse_to_block("the end of `with`", "use `async with`")
            except CallboardError:
                self._stop(STOP_TIMEOUT)
                raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._runtime.forked:
            return
        if not self._only_asks_for_stop:
            refuse_to_block("the end of `with`", "await astop(), and use `async with`")
        seconds = self.config.drain_timeout
        taken = self._time_taken(error)
        deadline = self._leave_by = time.monotonic() + seconds - taken
        late: DrainTimeout | None = None
        leaving = error
        try:
            try:  # here, and not in a function, at whose begin a signal could raise
                if kind is None:
                    self.drain()
            except (KeyboardInterrupt, SystemExit):
                self._drain_for_signal()
                raise
            else:
                self._drain_for_signal()
        except DrainTimeout as timeout:
            late = timeout
        except BaseException as raised:
            leaving = raised
            raise
        finally:
            left = max(min(deadline - time.monotonic(), STOP_TIMEOUT - taken), LAST_WORDS)
            try:
                self.stop(left)
            except DrainTimeout as behind:
                if leaving is not None:
                    log_left_behind(self.name, behind)
                elif late is None:
                    raise
                else:
                    late = drained_and_left(self.name, seconds, behind)
        if late is not None:
            raise late
        if kind is None and self._runtime.failure is not None:
            raise self._runtime.failure

    def __repr__(self) -> str:
        state = "stopped" if self._runtime.closed else f"{len(self._runtime.team.workers)} workers"
        return f"<{type(self).__name__} {self.name!r}, {state}>"

    def __reduce__(self) -> Any:
        raise TypeError(
            f"{self!r} cannot be pickled: its threads live in this process. "
            "In Spark, let callboard.spark make a system in each worker process"
        )
