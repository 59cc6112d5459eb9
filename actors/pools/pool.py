"""A pool of worker processes: its keeper, and the router over their actors."""

from __future__ import annotations

import inspect
import threading
from collections import deque
from dataclasses import asdict
from typing import Any

from callboard import Actor, ActorSystem
from callboard._inside.answers.combined import gather
from callboard._inside.arguments import divided
from callboard._inside.spawn import check_options
from callboard.core import checks
from callboard.core.errors import CallboardError, SpawnError
from callboard.core.log import log
from callboard.core.text import safe_repr
from callboard.core.threads.cores import usable_cores
from callboard.observing.wait_report import WaitRecord
from callboard.pools.child import encode_arguments
from callboard.pools.link import ProcessLink, ProcessSubmission
from callboard.pools.messages import TELL, TELL_MANY
from callboard.pools.pickling import main_place, make_codec, place_of, refuse_if_imported
from callboard.pools.process import WorkerProcess
from callboard.pools.process_ref import ProcessRef
from callboard.remote.errors import CodecError, RemoteCallError, RemoteError
from callboard.remote.sockets.forked import close_in_children
from callboard.remote.wire.codec import named
from callboard.routers import AutoScale, KeyRouter, RoundRobinRouter, Router
from callboard.routers.elastic import Level
from callboard.scheduling.monitor import ProcessStatistics

# After more than LIMIT unwanted ends of processes within WINDOW seconds the pool gives up.
LIMIT = 10
LIMIT_OF_STARTS = 2  # where the actor of a process has never started
WINDOW = 60.0
# Seconds between two looks at the queues of an elastic pool: a process starts in about that time.
PERIOD = 1.0
# Seconds before a restart that follows another; each further one waits twice as long.
BACKOFF = 0.1
MOST_BACKOFF = 5.0


class ProcessFamily:
    """The family of a router whose routees live in processes. Safe in every thread."""

    def __init__(
        self,
        system: ActorSystem,
        spec: dict[str, Any],
        types: Any,
        name: str | None,
        elastic: AutoScale | None,
    ) -> None:
        self._runtime = system._runtime
        self._spec = spec
        self._codec = make_codec(types, spec["pickle"])
        self._lock = threading.Lock()
        self.processes: list[WorkerProcess] = []
        """All that are there, also those whose end is wanted."""
        self._numbers = 0
        self._router: Router[Any] | None = None
        self.is_over = False
        self.why = ""  # it gave up
        self.parent = system.spawn(Processes, self, elastic, dedicated=True, name=name)
        self._runtime.dead_letters.expect_wake_ups(self.parent, PoolNews)

    @property
    def ended(self) -> bool:
        """True when all processes have ended."""
        return self.is_over

    def waits(self) -> list[WaitRecord]:
        """Return what the pool waits for, process by process."""
        with self._lock:
            processes = [*self.processes]
        return [process.wait_of() for process in processes]

    def leave_waits(self) -> None:
        """Do nothing: a pool has no threads that wait for answers."""

    def end_with_system(self) -> None:
        """Do nothing: the keeper ends with the system."""

    def processes_now(self) -> list[ProcessStatistics]:
        """Return the figures of each process."""
        with self._lock:
            return [process.figures() for process in self.processes]

    def figures(self) -> dict[str, Any]:
        """Return the name and the processes, and no figures of rows: those are of graphs."""
        counts = dict.fromkeys(("rows", "skipped", "late", "unpaired"), 0)
        processes = [asdict(one) for one in self.processes_now()]
        return {
            "run": f"pool {self.parent.path}",
            "operators": [],
            "processes": processes,
            **counts,
        }

    def shape(self) -> None:
        """Return nothing: processes have no lines between them."""

    def begin(self, router: type[Router[Any]], by: Any, count: int) -> Router[Any]:
        """Start `count` processes, and return the router over their actors."""
        with self._lock:
            refs = [self._start().ref for _ in range(count)]
            self._router = KeyRouter(refs, by) if by is not None else router(refs)
            self._router._family = self
            return self._router

    def resize(self, count: int) -> None:
        """Change the number of processes. Those removed end when their messages are handled."""
        count = checks.whole("the number of processes", count)
        with self._lock:
            if self.is_over:
                raise CallboardError(f"{self.parent.path} has ended, and cannot be resized")
            assert self._router is not None
            refs = list(self._router.refs)
            while len(refs) < count:
                refs.append(self._start().ref)
            self._router._set_refs(refs[:count])

    def follow(self, level: Level | None) -> None:
        """Follow the queues with the number of processes."""
        if level is None or self._router is None or self.is_over:
            return
        refs: tuple[Any, ...] = self._router.refs
        wanted = level.decide(len(refs), sum(ref.queue_length for ref in refs))
        if wanted != len(refs):
            log.info("a pool is resized", pool=self.parent.path, before=len(refs), now=wanted)
            self.resize(wanted)

    def stop(self, after_queue: bool) -> None:
        """End the processes, and the keeper."""
        checks.flag("after_queue", after_queue, error=TypeError)
        if not after_queue:
            self.parent.stop()
            return
        with self._lock:
            rests = [process.ref._link.rest() for process in self.processes]
        gather(*rests).add_done_callback(lambda _: self.parent.stop())

    def restart(self, process: WorkerProcess) -> None:
        """Start the next process at the place of one that has ended."""
        with self._lock:
            if not self.is_over:
                process.start()

    def forget(self, process: WorkerProcess) -> None:
        """Take note of the end of a process that was removed."""
        with self._lock:
            self.processes.remove(process)
        process.ref._link.refuse(f"{process.ref.path} has ended")

    def end(self) -> None:
        """End all processes, and wait for that. On the keeper's thread."""
        with self._lock:
            self.is_over = True
            processes = [*self.processes]
        for process in processes:
            process.ref._link.refuse(self.why or f"{process.ref.path} has ended")
            process.end()
        for process in processes:
            process.wait()

    def _on_loss(self, submissions: list[ProcessSubmission], error: RemoteError) -> None:
        """Make dead letters of told messages that ended with a process."""
        for submission in submissions:
            left = submission.left()
            messages = self._messages(submission) if left else []
            if len(messages) == submission.messages:  # otherwise they cannot be decoded
                messages = [messages[place] for place in left]
            for message in messages:
                self._runtime.dead_letters.post(message, self.parent, None, "lost", error)

    def _post(self, reason: str, error: list[str] | None, text: str, data: bytes | None) -> None:
        """Post a dead letter of a process here, too."""
        message: Any = text
        if data is not None:
            try:
                message = self._codec.decode(data, is_trusted=True)
            except CodecError as failure:
                path = self.parent.path
                log.warning("a dead letter cannot be decoded", pool=path, error=failure)
        why = None if error is None else RemoteCallError(*error)
        self._runtime.dead_letters.post(message, self.parent, None, reason, why)

    def _messages(self, submission: ProcessSubmission) -> list[Any]:
        data = submission.body
        try:
            if submission.kind == TELL_MANY:
                return self._codec.decode_rows(data, is_trusted=True)
            if submission.kind == TELL:
                return [self._codec.decode(data, is_trusted=True)]
        except CodecError as error:
            log.error("a lost message cannot be decoded", pool=self.parent.path, error=error)
        return [data]

    def _start(self) -> WorkerProcess:
        """Start a process at a new place, with the lock. Raises OSError."""
        self._numbers += 1
        path = f"{self.parent.path}/{self._numbers}"
        link = ProcessLink(path, self._codec, self._runtime.team, self._on_loss, self._post)
        close_in_children(link)
        ref = ProcessRef(link, self._codec, self._runtime.timers)
        spec = {**self._spec, "system": path.strip("/").replace("/", "-")}
        process = WorkerProcess(spec, link, ref, self._note_end)
        # A process that was removed ends when all that was sent to it is handled.
        ref._retire = lambda: link.rest().add_done_callback(lambda _: process.end())
        process.start()
        self.processes.append(process)
        return process

    def _note_end(self, process: WorkerProcess, why: str) -> None:
        self.parent.tell(ProcessEnded(process, why))


class PoolNews:
    """A message to a pool's keeper that has no meaning after its end."""


class ProcessEnded(PoolNews):
    """Told to a pool's keeper: a process has ended."""

    def __init__(self, process: WorkerProcess, why: str) -> None:
        self.process = process
        self.why = why

    def __repr__(self) -> str:
        return f"<ProcessEnded {self.process.ref.path}: {self.why}>"


class Restart(PoolNews):
    """Told to a pool's keeper: it is time to start a process again."""

    def __init__(self, process: WorkerProcess) -> None:
        self.process = process


class QueueLook(PoolNews):
    """Told to a pool's keeper: it is time to look at the queues."""


class Processes(Actor[Any]):
    """The keeper of a pool's processes: it restarts them, and ends them at its own end.

    With `elastic` their number follows the queues.
    """

    def __init__(self, pool: ProcessFamily, elastic: AutoScale | None) -> None:
        self._pool = pool
        self._elastic = elastic
        self._level = None if elastic is None else Level(elastic)
        self._ends: deque[float] = deque()

    def on_start(self) -> None:
        """Look at the queues, from time to time."""
        if self._elastic is not None:
            self.every(self._elastic.period, QueueLook())

    def receive(self, message: ProcessEnded | Restart | QueueLook) -> None:
        """Restart a process that has ended, if that was not wanted."""
        if isinstance(message, QueueLook):
            self._pool.follow(self._level)
        elif isinstance(message, Restart):
            self._pool.restart(message.process)
        elif message.process.is_ending:
            self._pool.forget(message.process)
        else:
            self._restart(message.process, message.why)

    def _restart(self, process: WorkerProcess, why: str) -> None:
        path = process.ref.path
        log.error("a process of a pool has ended", process=path, why=why)
        now = self._pool._runtime.timers.now()
        self._ends.append(now)
        while now - self._ends[0] > WINDOW:
            self._ends.popleft()
        times = len(self._ends)
        if times > (LIMIT if process.was_ready else LIMIT_OF_STARTS):
            self._pool.why = (
                f"{self.ref.path} gives up: its processes ended {times} times within {WINDOW:g} s; "
                f"the last was {path}: {why}"
            )
            raise CallboardError(self._pool.why)
        if times == 1:
            self._pool.restart(process)
        else:
            self.after(min(BACKOFF * 2 ** (times - 2), MOST_BACKOFF), Restart(process))

    def on_stop(self) -> None:
        """End the processes."""
        self._pool.end()


def spawn_pool(
    system: ActorSystem,
    cls: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    processes: int | None,
    elastic: AutoScale | tuple[int, int] | None,
    router: Any,
    by: Any,
    pickle: bool,
    types: Any,
    name: str | None,
) -> Router[Any]:
    """Start processes, and return a router over one actor of `cls` in each: `system.pool()`."""
    refuse_if_imported()
    if system._runtime.manual:
        raise CallboardError("a ManualSystem has no processes: give the test a router of actors")
    given = {"processes": processes, "elastic": elastic, "router": router, "by": by, "name": name}
    given |= {"types": types or None, "pickle": pickle or None}
    cls, args, kwargs, options = divided("pool()", cls, args, kwargs, given)
    if not issubclass(cls, Actor):
        raise SpawnError(f"pool() expects a subclass of Actor, got {safe_repr(cls)}")
    bounds = None if elastic is None else AutoScale._of(elastic, PERIOD)
    if processes is None:
        processes = usable_cores() if bounds is None else bounds.min_size
    count = checks.whole("processes", processes)
    if bounds is not None:
        bounds._refuse("processes", count)
    pickles = checks.flag("pickle", pickle)
    if by is not None and router is not None:
        raise TypeError("pool() takes router= or by=, not both")
    router = RoundRobinRouter if router is None else router
    if not isinstance(router, type) or not issubclass(router, Router) or router is KeyRouter:
        raise TypeError(f"pool() expected a class of routers, or by=, got {safe_repr(router)}")
    by_names = dict(named(types))
    make_codec(by_names, False)  # it raises for invalid ones
    if inspect.getattr_static(cls, "supervision", None) is None:
        options = {"supervision": "restart", **options}
    check_options(system._runtime, cls, options)
    modules = {one.__module__ for one in (cls, *by_names.values())}
    spec = {
        "main": main_place() if pickles or "__main__" in modules else {},
        "class": place_of(cls),
        "types": [[known, *place_of(one)] for known, one in by_names.items()],
        "pickle": pickles,
        "observable": system.config.observable,
        "arguments": encode_arguments(args, kwargs, options, by_names, pickles),
    }
    pool = ProcessFamily(system, spec, by_names, name, bounds)
    try:
        made = pool.begin(router, by, count)
    except BaseException:
        pool.stop(after_queue=False)
        raise
    system._observer.add_graph(pool)
    return made
