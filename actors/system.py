"""The actor system: it spawns actors, becomes idle, and stops."""

from __future__ import annotations

import os
import signal
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import signature
from types import BuiltinFunctionType, FunctionType, TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, Self, TypeVar, cast, overload

from callboard._inside.delayed_messages import start_timer
from callboard._inside.directory import Directory
from callboard._inside.life import exit as _exit
from callboard._inside.sending.ref import ActorRef
from callboard._inside.spawn import spawn_in_system
from callboard.core import checks
from callboard.core.errors import (
    CallboardError,
    ConfigError,
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
from callboard.dead_letters import DeadLetters
from callboard.diagnosis import all_actors
from callboard.mailboxes import BoundedMailbox
from callboard.observing.observer import Observer
from callboard.observing.waits import waits_of
from callboard.scheduling.config import Config
from callboard.scheduling.placement import rebalance
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
    from callboard.observing.wait import WaitReport
    from callboard.recipient import Recipient
    from callboard.routers.router import Router
    from callboard.scheduling.monitor import Statistics
    from callboard.timers import Timer

    _A = TypeVar("_A")
    _M = TypeVar("_M")
    _Ts = TypeVarTuple("_Ts")

P = ParamSpec("P")
F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R", covariant=True)


def _compiled(method: Callable[..., Any]) -> Callable[[F], F]:
    """Put a compiled method in the place of the one that is decorated, and describes it."""

    def replace(described: F) -> F:
        method.__doc__ = described.__doc__
        method.__name__, method.__qualname__ = described.__name__, described.__qualname__
        return cast("F", method)

    return replace


class Runnable(Protocol[P, R]):
    """A graph as a system sees it. Its options are the parameters of the method that starts it."""

    def _run_in(self, system: ActorSystem, /, *args: P.args, **options: P.kwargs) -> R: ...


class ActorSystem(CopiedAsItself):
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
        cpu_affinity: bool | Sequence[int] = False,
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
        `callboard` may look into the system, and it keeps its latest 100 dead letters.
        `cpu_affinity` ties each worker to a core. `drain_timeout` is in seconds. `context` says
        which context variables actors see: see `spawn`. `config` is a dict or the path of a TOML
        file, whose settings win over the keywords, so that an operator can tune without touching
        code.

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
            cpu_affinity=cpu_affinity,
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
        """Make an actor of class `cls` and return its ref at once.

        The object is made by the worker that the actor lives on: `ref.ready` is a future of that,
        and fails if it fails. Keyword arguments with the names of options are options: see
        `SpawnOptions`. All others go to the class with `args`. `cls` may be a `partial` of a class,
        whose arguments are never options, or a generic class with its parameters, `Box[int]`.

        A class may have attributes `mailbox`, `supervision`, `dedicated`, `event_loop` and
        `concurrency`: its actors' options where the spawn has none.

        Raises SpawnError, PolicyError, SystemClosed, ForkedSystem. Arguments that the class does
        not take, such as a mistyped option, raise a SpawnError that is a TypeError, too. So does an
        option that the class has an argument of the same name for, unless that is given by position
        or by the `partial`.
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

        `processes` is their number: without it, one for each usable core. With `elastic`, an
        AutoScale of `callboard.routers` or a pair of bounds, it follows the queues. Arguments and
        options of `spawn` go to each actor; `name` is that of the actor that keeps the processes.
        The router is a RoundRobinRouter, or one of the class `router`, or a KeyRouter with `by`.

        Messages, answers and arguments are values that `callboard.remote` can send, with
        dataclasses and enumerations that are named in `types`. With `pickle` all others are
        pickled. The processes import `cls` by its name. See `docs/pools.md`.

        Raises SpawnError, CodecError, ConfigError, TypeError, ValueError, and OSError.
        """
        from callboard.pools.pool import spawn_pool

        return spawn_pool(
            self,
            cls,
            args,
            {**options},
            processes=processes,
            elastic=elastic,
            router=router,
            by=by,
            pickle=pickle,
            types=types,
            name=name,
        )

    @overload
    def find(self, what: str, /) -> ActorRef[Any]: ...

    @overload
    def find(self, what: type[Actor[_M]], /) -> list[ActorRef[_M]]: ...

    @overload
    def find(self, what: type, /) -> list[ActorRef[Any]]: ...

    def find(self, what: str | type, /) -> Any:
        """Return the live actor at a path such as `/shop/cart`, or the live actors of a class.

        The names of a path are those given at the spawns; an actor without one is found by its
        `ref.name`, too. The actors of a class, and of its subclasses, are a list, parents before
        their children.

        Raises CallboardError if there is no actor at the path.
        """
        if isinstance(what, type):
            return self._directory.of_class(what)
        return self._directory.at(what)

    def afind(self, path: str, timeout: float | None = None) -> Future[ActorRef[Any]]:
        """Return a future of the ref of the actor at `path`: done when that is spawned, or at once.

        The actor's start may still fail: see `ref.ready`. The future fails with AskTimeout after
        `timeout` seconds, and with SystemClosed when the system is stopped. Raises ForkedSystem.
        """
        return self._directory.expect(path, timeout)

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

    # --- timers ----------------------------------------------------------------------------------

    def after(self, seconds: float, message: Any, *, to: Recipient[Any]) -> Timer:
        """Send `message` to an actor or another Recipient once, after `seconds`.

        Return a timer with `cancel()`.

        In any thread. The timer ends with the system. Raises SystemClosed, ForkedSystem.
        """
        return start_timer(self._runtime, seconds, None, message, to, False)

    def every(
        self, seconds: float, message: Any, *, to: Recipient[Any], coalesce: bool = False
    ) -> Timer:
        """Send `message` to an actor or another Recipient every `seconds`.

        Return a timer with `cancel()`. With `coalesce` no message is sent while the last one waits
        or is in work. In any thread. The timer ends with the system. Raises SystemClosed,
        ForkedSystem.
        """
        return start_timer(self._runtime, seconds, seconds, message, to, coalesce)

    # --- graphs ----------------------------------------------------------------------------------

    def run(self, graph: Runnable[P, R], *args: P.args, **options: P.kwargs) -> R:
        """Start a graph of streams, or a net, in this system, and return its Run, or NetRun.

        The options are those of the graph: see `Graph` of streams, and `Net`.

        Raises GraphError for anything but a graph or a net, and TypeError for an option that the
        graph does not have.
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
        known = signature(graph._run_in).parameters
        for name in options:
            if name not in known:
                raise TypeError(
                    f"run() of a {type(graph).__name__} got an unexpected option {name!r}"
                    f"{did_you_mean(name, known)}"
                )
        return graph._run_in(self, *args, **options)

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
        team = self._runtime.team
        if team.steals:
            raise PolicyError(
                f"the actors of {self.name!r} cannot be arranged by {safe_repr(chosen)}: under "
                "dynamic threading they run where they are woken; use threading='assigned'"
            )
        moves = rebalance(list(all_actors(self._runtime)), team.workers, chosen)
        for actor, worker in moves:
            worker.take_over(actor)
        return len(moves)

    # --- observing -------------------------------------------------------------------------------

    def statistics(self) -> Statistics:
        """Return the figures of every live actor and every worker, to be printed or looked into.

        Times and queues are known if the system was made with a `monitoring` level.
        """
        return collect(self._runtime)

    def why_waiting(self, stuck_after: float = 1.0) -> WaitReport:
        """Return why each live actor, and each operator of a running graph, does nothing just now.

        Print it, or look into it: see WaitReport. An actor that has been in one message for
        `stuck_after` seconds or longer is stuck, and its entry has its Python stack. In any thread,
        at every monitoring level; it disturbs no actor.
        """
        seconds = checks.seconds("stuck_after", stuck_after, error=ConfigError)
        return waits_of(self._runtime, seconds)

    # --- becoming idle, and stopping -------------------------------------------------------------

    @property
    def is_run_here(self) -> bool:
        """True in the one thread that may run the system, step by step: see `ManualSystem`."""
        return False

    def _run_until(self, predicate: Callable[[], bool], timeout: float | None) -> bool:
        """Run until `predicate()` is true, where `is_run_here` is."""
        raise NotImplementedError

    @property
    def is_closed(self) -> bool:
        """True from the moment when the system was told to stop."""
        return self._runtime.closing

    def drain(self, timeout: float | None = None) -> None:
        """Wait until no message, and no row of a run, waits or is in work anywhere.

        Timers that are not due yet do not count. `timeout` is in seconds; without it, the system's
        `drain_timeout`. Raises DrainTimeout, which says which actors are in the way, since when,
        and where in their code.
        """
        self._shutdown.drain(timeout)

    def adrain(self, timeout: float | None = None) -> Future[None]:
        """Like drain(), but return a future at once, to be awaited in an event loop.

        Raises CallboardError in an actor, as drain() does.
        """
        return self._shutdown.adrain(timeout)

    def join(self, timeout: float | None = None) -> bool:
        """Wait until all actors have stopped, or until the failure of one has stopped the system.

        Returns False after `timeout` seconds without that; None waits for ever. In a coroutine use
        `ajoin()`: this raises WouldBlock.
        """
        return self._shutdown.join(timeout)

    def ajoin(self, timeout: float | None = None) -> Future[bool]:
        """Like join(), but return a future at once, to be awaited in an event loop."""
        return self._shutdown.ajoin(timeout)

    def stop(self, timeout: float = STOP_TIMEOUT) -> None:
        """Stop all actors after the messages in work, then the event loop and the workers.

        Messages that still wait become dead letters. A call from an actor only asks for the stop,
        and returns. It takes little more than `timeout` seconds at most. Raises DrainTimeout if an
        actor, or a worker, does not come back by then; its thread is left behind. In a coroutine
        use `astop()`: this raises WouldBlock.
        """
        self._shutdown.stop(timeout)

    def astop(self, timeout: float = STOP_TIMEOUT) -> Future[None]:
        """Like stop(), but return a future at once, to be awaited in an event loop.

        The stop goes on after a cancelled `await`. The future fails with DrainTimeout where stop()
        raises it.
        """
        return self._shutdown.astop(timeout)

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
            raise SystemClosed(f"the system {self.name!r} was stopped: it handles no signals")
        self._shutdown.signals.install(signals)

    def _drain_for_signal(self) -> None:
        self._shutdown.drain_for_signal(self)

    def __enter__(self) -> Self:
        if not self.is_run_here:
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
