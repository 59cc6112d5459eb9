"""The actor system: it spawns actors, becomes idle, and stops."""

from __future__ import annotations

import os
import signal
import weakref
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, cast, overload

from callboard._inside.delayed_messages import start_timer
from callboard._inside.directory import Directory
from callboard._inside.life import exit as _exit
from callboard._inside.sending.ref import ActorRef
from callboard._inside.spawn import spawn_in_system
from callboard.core import checks
from callboard.core.errors import CallboardError, ConfigError, PolicyError
from callboard.core.handles import CopiedAsItself
from callboard.core.log import log
from callboard.core.text import safe_repr
from callboard.core.threads.blocking import refuse_to_block
from callboard.core.threads.green import refuse_green_threads
from callboard.core.threads.interpreter import has_gil
from callboard.dead_letters import DeadLetters
from callboard.diagnosis import all_actors
from callboard.mailboxes import BoundedMailbox
from callboard.observing.observer import Observer
from callboard.observing.wait_search import waits_of
from callboard.runnable import Runnable, start
from callboard.scheduling.config import Config
from callboard.scheduling.placement import make_moves, rebalance
from callboard.scheduling.team import Team
from callboard.scheduling.tracing.flight_recorder import FlightRecorder
from callboard.shutdown import STOP_TIMEOUT, Shutdown
from callboard.startup import check_classes, make_runtime, start_workers
from callboard.statistics import collect
from callboard.supervision import Supervision
from callboard.timers import Timers

if TYPE_CHECKING:
    from typing import TypeVarTuple, Unpack

    from callboard._inside.answers.future import Future
    from callboard._inside.arguments import ActorOptions, SpawnOptions
    from callboard.actor import Actor, AnyActor
    from callboard.observing.wait_report import WaitReport
    from callboard.recipient import Recipient
    from callboard.routers.router import Router
    from callboard.scheduling.monitor import Statistics
    from callboard.timers import Timer

    _A = TypeVar("_A")
    _M = TypeVar("_M")
    _Ts = TypeVarTuple("_Ts")

P = ParamSpec("P")
F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")


def _compiled(method: Callable[..., Any]) -> Callable[[F], F]:
    """Put a compiled method in the place of the one that is decorated, and describes it."""

    def replace(described: F) -> F:
        method.__doc__ = described.__doc__
        method.__name__, method.__qualname__ = described.__name__, described.__qualname__
        return cast("F", method)

    return replace


class ActorSystem(CopiedAsItself):
    """Workers, and the actors that they run. A context manager: leaving it drains, then stops.

    Draining takes at most `drain_timeout` seconds, and half a second more in which actors can stop.
    Then one DrainTimeout says what is stuck. If an exception leaves the block, the system does not
    drain: waiting messages become dead letters. It waits for the current messages, at most for 10 s
    or `drain_timeout`; the exception propagates, and the log says what is stuck. A cancelled `async
    with`, for coroutines, does the same. After `install_signal_handlers()` the first signal drains,
    too.

    A system that is garbage-collected, or open when the interpreter exits, stops without draining.
    In a forked child, its copy raises ForkedSystem.
    """

    def __init__(
        self,
        name: str = "callboard",
        *,
        workers: int | str | tuple[int, int] | None = None,
        processes: int | str = 0,
        shared_memory: int = 128 << 20,
        threading: str | None = None,
        placement: Any = None,
        priority: Any = "fifo",
        quantum: int = 64,
        time_slice: float = 0.005,
        monitoring: str = "off",
        trace: str | os.PathLike[str] | FlightRecorder | None = None,
        observable: bool = False,
        drain_timeout: float = 30.0,
        context: str = "own",
        config: Any = None,
    ) -> None:
        """Start the workers.

        Args:
            name: For logs, threads and tools.
            workers: The number of workers; by default one for each core that the process may use.
                With "elastic", or a range such as `(1, 8)`, the system adjusts how many run, and
                suspends the others: see `docs/elasticity.md`.
            processes: The number of worker processes, in which functions of graphs and nets run on
                more than one core. With "auto", there is one for each core that the process may
                use, and functions run there if that is faster. See `docs/processes.md`.
            shared_memory: The most bytes of shared memory for each of these, half in each
                direction. What finds no room waits, or travels more slowly.
            threading: Which worker runs an actor. "dynamic", the default: the one that wakes it,
                and idle workers take actors from busy ones. "assigned", the default with a
                `placement`: the one that the policy chose, until `rebalance()`.
            placement: A placement policy, or the name of one: see `docs/policies.md`.
            priority: A priority policy, or the name of one.
            quantum: The most messages that a dispatch handles.
            time_slice: The number of seconds after which a dispatch takes no more messages.
            monitoring: What is measured: "off", "times", "mailboxes", "channels" or "workers".
            trace: The path of a file for a trace of everything that runs, or a FlightRecorder. Sets
                `monitoring` to "times" at least.
            observable: Let the commands `top`, `dashboard`, `info`, `tree` and `dump` of
                `callboard` inspect the system, and keep its latest 100 dead letters.
            drain_timeout: How many seconds a drain may take by default.
            context: Which context variables actors see: see `spawn`.
            config: A dict, or the path of a TOML file. Its settings override these arguments, so
                that operators can tune without changing code. For more settings see
                `docs/policies.md`.

        Each worker's thread starts here, unless it could only wait for the interpreter's lock: on a
        build with that lock, all workers but the first start with the first native or placed actor.

        Raises:
            ConfigError: A setting is invalid.
            OSError: The trace cannot be written.
            CallboardError: gevent or eventlet has replaced threads.
        """
        refuse_green_threads("an ActorSystem")
        self.config = Config.load(
            config,
            mailbox=BoundedMailbox,
            supervision=Supervision,
            name=name,
            workers=workers,
            processes=processes,
            shared_memory=shared_memory,
            threading=threading,
            placement=placement,
            priority=priority,
            quantum=quantum,
            time_slice=time_slice,
            monitoring=monitoring,
            trace=trace,
            observable=observable,
            drain_timeout=drain_timeout,
            context=context,
        )
        check_classes(self.config.classes)
        token = self.config.workers > 1 and has_gil()  # its holder runs Python actors
        self._open(Team(token), Timers(self.config.name))
        try:
            self._observer.traces.begin(self.config.trace)
            if self.config.observable:
                self._observer.open_endpoint()
            start_workers(self._runtime, self.config)
        except (CallboardError, OSError):
            self._runtime.closed = True
            self._observer.close()
            _exit.forget(self)
            raise
        log.info("system started", system=self.config.name, workers=self.config.workers)

    _shutdown_class = Shutdown

    def _open(self, team: Team, timers: Timers, *, manual: bool = False) -> None:
        """Make the parts, of which none refers to the system: nothing keeps it alive."""
        self._runtime = runtime = make_runtime(self.config, team, timers, manual)
        self._observer = Observer(runtime)
        self._shutdown = self._shutdown_class(runtime, self._observer)
        self._directory = Directory(runtime)
        runtime.system_ref = weakref.ref(self)
        if self.config.monitoring != "off":
            runtime.records = self._observer.records
        _exit.remember(self, runtime)

    # --- actors ----------------------------------------------------------------------------------

    # No type stands for "a class's parameters, and options": see `Spawns` in actor.pyi.
    @overload
    def spawn(
        self, cls: Callable[P, AnyActor[_M, _A]], /, *args: P.args, **kwargs: P.kwargs
    ) -> ActorRef[_M, _A]: ...

    @overload
    def spawn(
        self,
        cls: Callable[[Unpack[_Ts]], AnyActor[_M, _A]],
        /,
        *args: *_Ts,
        **options: Unpack[SpawnOptions],
    ) -> ActorRef[_M, _A]: ...

    # mypy 1.18 finds that this takes no `*Ts` with options, though it takes everything.
    @_compiled(spawn_in_system)  # type: ignore[misc]
    def spawn(self, cls: Any, /, *args: Any, **kwargs: Any) -> ActorRef[Any]:
        """Make an actor and return its ref at once.

        The actor's worker makes the object: `ref.ready` is a future of that.

        Args:
            cls: A class of actors, which may be generic with its parameters, such as `Box[int]`, or
                a `partial` of a class, whose arguments are never options.
            args: Arguments of the class.
            kwargs: Options, with the names in `SpawnOptions`; all others are arguments of the
                class. Attributes `mailbox`, `supervision`, `dedicated`, `event_loop` and
                `concurrency` of the class are its default options.

        Raises:
            SpawnError: An option is invalid. It is also a TypeError for arguments that the class
                does not take, such as a mistyped option, and for an option that could also be an
                argument of the class: pass that by position or in a `partial`.
            PolicyError: The placement policy failed.
            SystemClosed: The system was stopped.
            ForkedSystem: The system belongs to the parent process.
        """
        raise NotImplementedError

    def pool(
        self,
        cls: Callable[[Unpack[_Ts]], AnyActor[_M, _A]],
        /,
        *args: *_Ts,
        processes: int | None = None,
        elastic: Any = None,
        router: Any = None,
        by: Any = None,
        pickle: bool = False,
        types: Any = (),
        name: str | None = None,
        **options: Unpack[ActorOptions],
    ) -> Router[_M, _A]:
        """Start worker processes with one actor of `cls` in each, and return a router over them.

        Messages, answers and arguments must be values that `callboard.remote` can send. The
        processes import `cls` by its name. See `docs/pools.md`.

        Args:
            cls: The class of the actors.
            args: The arguments of each actor, as for `spawn`.
            processes: The number of processes; by default one for each usable core.
            elastic: An AutoScale of `callboard.routers`, or a pair of bounds, to adjust the number
                of processes to the queues.
            router: A class of routers; by default RoundRobinRouter.
            by: The key of a KeyRouter, instead of `router`.
            pickle: Pickle the values that `callboard.remote` cannot send.
            types: The dataclasses and enumerations in messages.
            name: The name of the actor that manages the processes.
            options: The options of each actor, as for `spawn`.

        Raises SpawnError, CodecError, ConfigError, TypeError, ValueError, and OSError.
        """
        from callboard.pools.pool import spawn_pool

        return spawn_pool(
            self, cls, args, {**options}, processes, elastic, router, by, pickle, types, name
        )

    @overload
    def find(self, what: str, /) -> ActorRef[Any]: ...

    @overload
    def find(self, what: type[Actor[_M]], /) -> list[ActorRef[_M]]: ...

    @overload
    def find(self, what: type, /) -> list[ActorRef[Any]]: ...

    def find(self, what: str | type, /) -> Any:
        """Return the live actor at a path such as `/shop/cart`, or the live actors of a class.

        A path consists of the names given at the spawns; an actor without one is found by its
        `ref.name`. The actors of a class and of its subclasses are a list, parents before their
        children.

        Raises CallboardError if there is no actor at the path.
        """
        if isinstance(what, type):
            return self._directory.of_class(what)
        return self._directory.at(what)

    def afind(self, path: str, timeout: float | None = None) -> Future[ActorRef[Any]]:
        """Return a future of the ref of the actor at `path`, done once that is spawned.

        It fails with AskTimeout after `timeout` seconds, and with SystemClosed when the system is
        stopped. Raises ForkedSystem.
        """
        return self._directory.expect(path, timeout)

    @property
    def name(self) -> str:
        """The name of the system."""
        return self.config.name

    @property
    def actors(self) -> list[ActorRef[Any]]:
        """The top-level actors, in the order in which they were spawned."""
        return self._runtime.top

    @property
    def dead_letters(self) -> DeadLetters:
        """The messages that were told but not handled."""
        return self._runtime.dead_letters

    # --- timers ----------------------------------------------------------------------------------

    def after(self, seconds: float, message: Any, *, to: Recipient[Any]) -> Timer:
        """Send `message` to an actor or another Recipient once, after `seconds`.

        Return a timer with `cancel()`. Any thread may call this. The timer ends with the system.
        Raises SystemClosed, ForkedSystem.
        """
        return start_timer(self._runtime, seconds, None, message, to, False)

    def every(
        self, seconds: float, message: Any, *, to: Recipient[Any], coalesce: bool = False
    ) -> Timer:
        """Send `message` to an actor or another Recipient every `seconds`.

        Return a timer with `cancel()`. With `coalesce` no message is sent while the last one waits
        or is being handled. Any thread may call this. The timer ends with the system. Raises
        SystemClosed, ForkedSystem.
        """
        return start_timer(self._runtime, seconds, seconds, message, to, coalesce)

    # --- graphs ----------------------------------------------------------------------------------

    def run(self, graph: Runnable[P, R], *args: P.args, **options: P.kwargs) -> R:
        """Start a graph of streams or a net in this system, and return its Run or NetRun.

        For the options see `Graph` of streams, and `Net`.

        Raises GraphError for anything but a graph or a net, and TypeError for an unknown option.
        """
        return start(self, graph, *args, **options)

    # --- tuning ----------------------------------------------------------------------------------

    def rebalance(self, policy: Any = None) -> int:
        """Place all live actors again by a placement policy. Return how many move.

        `policy` is a policy or the name of one, by default the system's. An actor moves when it
        next becomes ready, or after the current dispatch. No message is lost or reordered (see
        `WorkerThread.take_over`). Actors with their own worker stay. Raises PolicyError,
        ConfigError.
        """
        self._runtime.refuse_fork()
        chosen = self.config.placement_policy(policy)
        team = self._runtime.team
        if team.steals:
            raise PolicyError(
                f"the actors of {self.name!r} cannot be arranged by {safe_repr(chosen)}: under "
                "dynamic threading they run where they are woken; use threading='assigned'"
            )
        return make_moves(rebalance([*all_actors(self._runtime)], team.workers, chosen))

    # --- observing -------------------------------------------------------------------------------

    def statistics(self) -> Statistics:
        """Return the figures of every live actor, worker and process, to be printed or inspected.

        Times and queues are included if the system was made with a `monitoring` level.
        """
        return collect(self._runtime)

    def why_waiting(self, stuck_after: float = 1.0) -> WaitReport:
        """Return why each live actor, and each operator of a running graph, is doing nothing now.

        Print it, or inspect it: see WaitReport. An actor that has been handling one message for
        `stuck_after` seconds or longer is stuck, and its entry has its Python stack. Any thread may
        call this, at every monitoring level; it does not disturb actors.
        """
        seconds = checks.seconds("stuck_after", stuck_after, error=ConfigError)
        return waits_of(self._runtime, seconds)

    # --- becoming idle, and stopping -------------------------------------------------------------

    @property
    def _is_run_here(self) -> bool:
        """True in the one thread that may run the system, step by step: see `ManualSystem`."""
        return False

    def _run_until(self, predicate: Callable[[], bool], timeout: float | None) -> bool:
        """Run until `predicate()` is true, where `_is_run_here` is."""
        raise NotImplementedError

    @property
    def is_closed(self) -> bool:
        """True as soon as the system has been told to stop."""
        return self._runtime.closing

    def drain(self, timeout: float | None = None) -> None:
        """Wait until no message, and no row of a run, is waiting or being handled anywhere.

        Timers that are not due do not count. `timeout` is in seconds, by default the system's
        `drain_timeout`. Raises DrainTimeout, which says which actors are not idle, since when, and
        where in their code they are.
        """
        self._shutdown.drain(timeout)

    def adrain(self, timeout: float | None = None) -> Future[None]:
        """Like drain(), but return a future to await in an event loop.

        Raises CallboardError in an actor, like drain().
        """
        return self._shutdown.adrain(timeout)

    def join(self, timeout: float | None = None) -> bool:
        """Wait until all actors have stopped, or until an actor's failure has stopped the system.

        Returns False if that takes more than `timeout` seconds. Raises WouldBlock in a coroutine.
        """
        return self._shutdown.join(timeout)

    def ajoin(self, timeout: float | None = None) -> Future[bool]:
        """Like join(), but return a future to await in an event loop."""
        return self._shutdown.ajoin(timeout)

    def stop(self, timeout: float = STOP_TIMEOUT) -> None:
        """Stop all actors after their current messages, then the event loop and the workers.

        Waiting messages become dead letters. A call from an actor only requests the stop, and
        returns. It takes little more than `timeout` seconds. Raises DrainTimeout if an actor or a
        worker has not ended by then, whose thread is abandoned, and WouldBlock in a coroutine.
        """
        self._shutdown.stop(timeout)

    def astop(self, timeout: float = STOP_TIMEOUT) -> Future[None]:
        """Like stop(), but return a future to await in an event loop.

        The stop continues even if the `await` is cancelled. The future fails where stop() raises.
        """
        return self._shutdown.astop(timeout)

    def install_signal_handlers(
        self, signals: Iterable[int] = (signal.SIGTERM, signal.SIGINT)
    ) -> None:
        """End the program's `with` block at a signal, once the messages in flight are handled.

        The first signal raises an exception in the main thread, in join(), in result() or in the
        program's own code: KeyboardInterrupt for SIGINT, otherwise SystemExit with 128 plus the
        signal's number. When it leaves the `with` block, the system drains, at most for its
        `drain_timeout`, then stops. Without such a block the interpreter's exit does so. A second
        signal ends the drain, and stops immediately. stop() restores the previous handlers.

        Raises CallboardError outside the main thread, and ConfigError for a signal that cannot be
        handled.
        """
        self._shutdown.install_signal_handlers(signals)

    def _drain_for_signal(self) -> None:
        self._shutdown.drain_for_signal(self)

    def __enter__(self) -> Self:
        if not self._is_run_here:
            try:
                refuse_to_block("the end of `with`", "use `async with`")
            except CallboardError:
                self._shutdown.stop_blocking(STOP_TIMEOUT)
                raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._shutdown.leave(self, error)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._shutdown.leave_soon(self, error)
        self._shutdown.signals.restore()  # which sets handlers in the main thread only

    def __repr__(self) -> str:
        state = "stopped" if self._runtime.closed else f"{len(self._runtime.team.workers)} workers"
        return f"<{type(self).__name__} {self.name!r}, {state}>"

    def __reduce__(self) -> Any:
        raise TypeError(
            f"{self!r} cannot be pickled: its threads live in this process. "
            "In Spark, let callboard.spark make a system in each worker process"
        )
