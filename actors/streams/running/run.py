"""Run, the handle by which users send rows to a graph at work, and take its results."""

from __future__ import annotations

import time
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

from callboard._inside.answers.future import Future
from callboard.core import checks
from callboard.core.errors import ConfigError, WouldBlock
from callboard.core.handles import CopiedAsItself
from callboard.core.markup import paragraph
from callboard.in_thread import InThread, Sending, until_done
from callboard.scheduling.placement import rebalance
from callboard.scheduling.policies import choose_placement
from callboard.streams.errors import RunError, StreamError
from callboard.streams.experiments.experiment import predict, predict_all
from callboard.streams.experiments.what_if import WhatIf, WhatIfs
from callboard.streams.planning.plan import Plan
from callboard.streams.running.execution import HELP, LOOK, Execution
from callboard.streams.running.results import PulledResults, Results, inputs_of
from callboard.streams.running.statistics import Progress, RunStatistics, collect
from callboard.streams.snapshots.snapshot import Snapshot
from callboard.system import ActorSystem

if TYPE_CHECKING:
    from callboard.remote.wire.codec import Types

R = TypeVar("R", covariant=True)
T = TypeVar("T")
V = TypeVar("V")

CANCEL = 5.0  # seconds that a cancelled run may take
_LEAVE = 10.0  # seconds that lanes which have ended their last round may take to be gone


class Run(CopiedAsItself, Generic[R]):
    """A graph at work. Made by `ActorSystem.run`; a context manager: leaving it finishes the run.

    In a coroutine use `async with`; if that is cancelled while it is left, the run is cancelled.

    Its methods may be called from any thread, and from actors, which then help with the work while
    they wait.
    """

    def __init__(self, system: ActorSystem, plan: Plan, **options: Any) -> None:
        self._work = Execution(system, plan, **options)
        self.tally = self._work.tally

    @property
    def entries(self) -> tuple[str, ...]:
        """The names of the graph's entries."""
        return self._work.plan.entries

    # --- rows, and what comes of them -------------------------------------------------------------

    def send(self, entry: str, rows: Iterable[Any], *, timeout: float | None = None) -> None:
        """Send rows into the graph, in order. Rows of several senders are ordered by arrival.

        Waits while `window` rounds are on their way, or too many `results()` are not taken. Raises
        RunTimeout if there is still no room after `timeout` seconds, the run's StreamError once the
        run has failed, and RunEnded when it was finished or cancelled, be it meanwhile. For the
        error it waits until no earlier row can fail any more. While the iterator of `rows` blocks,
        `timeout` is not looked at. If `rows` raises, the rows before that are sent. If there are
        none, it raises why the run takes no more, and never waits for room.

        Each exception says what became of the rows: `sent` of them went in, and `unsent` are those
        that were taken from `rows` and did not go in. So no row is lost with an iterator.

        An operator of the same run gets CallboardError: it would wait for itself.
        """
        self._work.send(entry, rows, timeout=timeout)

    def asend(
        self,
        entry: str,
        rows: Iterable[Any] | AsyncIterable[Any],
        *,
        timeout: float | None = None,
    ) -> Awaitable[None]:
        """Like send(), but return at once what is to be awaited in an event loop.

        Another thread goes through `rows`, a batch at a time, when there is room for it. A
        cancelled `await`, or `cancel()`, ends that: the rows that were taken go in, and the others
        are left in `rows`. Only then is the cancellation raised, so rows that are sent next come
        behind. A second cancellation does not wait, as for a `next()` of `rows` that blocks.
        `asyncio.create_task()` wants a coroutine, and this is none: use `asyncio.ensure_future()`.

        Rows of an asynchronous iterable are sent one after the other as they come, by the `await`
        itself; `timeout` is for each of them. A row that was taken, and had no room because of
        other senders, is `unsent` of the cancellation, as of other exceptions.
        """
        if isinstance(rows, AsyncIterable) and not isinstance(rows, Iterable):
            return self._pour(entry, rows, timeout)
        return self._soon(
            "send", partial(self._work.send, entry, rows, timeout=timeout), may_give_up=True
        )

    @overload
    def results(
        self: Run[list[T]], rows: Any = None, *, name: str | None = None, limit: int = 65_536
    ) -> Results[T]: ...
    @overload
    def results(
        self, rows: Any = None, *, name: str | None = None, limit: int = 65_536
    ) -> Results[Any]: ...
    def results(
        self, rows: Any = None, *, name: str | None = None, limit: int = 65_536
    ) -> Results[Any]:
        """Return an iterator of a collector's outputs, in order, as they are made. See Results.

        `name` says which, if there are several. One iterator at a time has it; when that one is
        closed or dropped, or has raised, another call gives one that goes on with the outputs that
        are not taken. `finish()` returns only outputs that were not taken.

        Without `rows`, others send: another thread, or another task by `asend()`. While
        `limit` outputs wait to be taken, `send()` waits. Batches on their way by then, `window` at
        most, still come. Where operators run in the caller's thread, that one takes too, by
        `take()`: RunError if it would wait for itself. The same holds for an actor that is not
        dedicated, as it would hold up its worker.

        With `rows` the iterator sends them itself, a batch at a time, and finishes the run. One
        thread is enough, at most `window` batches are on their way, and there is no `limit`. While
        it waits in `rows`, as for a socket, it hands nothing out, so the last outputs come with the
        next rows. Run the graph with `batch_size=1, window=1` to have those of each row first, or
        send from elsewhere, and take the results without `rows`.

        `rows` is an iterable for the one entry of a graph. Or it has rows by their entries: a dict
        of iterables, which are sent in turns, a batch of each, or pairs in the order of their
        arrival. If they raise, the outputs of the rows before are handed out. Then their exception
        is raised, with `sent` and `unsent` as by `send()`, and the run is cancelled, as when the
        iterator is dropped.

        Raises RunError if there is no such collector, or somebody takes from it.
        """
        work = self._work
        work.life.check_caller("results()", by_operators=True)
        limit = checks.whole("limit", limit, 1, error=ConfigError)
        buffer = work.outputs.of(name, work)
        if rows is None:
            return Results(work, buffer).take_over(limit)
        inputs = inputs_of(rows, work.plan.entries, work.batch_size)
        return PulledResults(work, buffer, inputs).take_over(None)

    # --- snapshots --------------------------------------------------------------------------------

    @property
    def position(self) -> dict[str, int]:
        """How many rows of each entry went in, with those of the snapshot that it goes on with."""
        return self._work.sent.copy()

    def snapshot(self, types: Types = (), timeout: float | None = None) -> Snapshot:
        """Return the state of all operators, with the rows that it is of as its `position`.

        Senders wait until no row is on its way, and while the state is taken. Rows that were sent
        are in it, and what they gave has left: collected outputs that were not taken are in the
        state, and so is how far files were written. A run made with `restore=SnapshotStore(...)`
        writes it to that directory, too, and has the `types` from there.

        Raises SnapshotError if an operator cannot be saved, RunTimeout after `timeout` seconds, and
        the errors of `send()` if the run failed or has ended.
        """
        return self._work.snapshot(types, timeout)

    def asnapshot(self, types: Types = (), timeout: float | None = None) -> Future[Snapshot]:
        """Like snapshot(), but return a future at once, to be awaited in an event loop."""
        return self._soon("snapshot", lambda: self.snapshot(types, timeout))

    # --- the end ---------------------------------------------------------------------------------

    def finish(self, timeout: float | None = None) -> R:
        """Let the operators emit what they still hold, wait for it, and return the results.

        These are the outputs of the graph's collector, without those taken from `results()`; a dict
        of lists by name with several collectors, None without one. From the call on, the run takes
        no more rows: `send()` raises RunEnded.

        Raises the StreamError of a run that failed, RunEnded of one that was cancelled, and
        RunTimeout after `timeout` seconds; then the run goes on, and finish() may be called again.
        """
        result: R = self._work.finish(timeout)
        return result

    async def _pour(self, entry: str, rows: AsyncIterable[Any], timeout: float | None) -> None:
        sent = 0
        unsent: list[Any] = []
        coming = aiter(rows)
        try:
            while True:
                if not self._work.has_room:
                    await self.asend(entry, [], timeout=timeout)
                try:
                    row = await anext(coming)
                except StopAsyncIteration:
                    break
                unsent = [row]
                try:
                    self.send(entry, [row])
                except WouldBlock:
                    await self.asend(entry, [row], timeout=timeout)
                sent, unsent = sent + 1, []
            if not sent:
                await self.asend(entry, [], timeout=timeout)
        except BaseException as error:
            if getattr(error, "sent", 0) and unsent:
                sent, unsent = sent + 1, []
            with suppress(Exception):  # an exception of the caller's may refuse attributes
                error.sent, error.unsent = sent, unsent  # type: ignore[attr-defined]
            raise

    def afinish(self, timeout: float | None = None) -> Future[R]:
        """Like finish(), but return a future at once, to be awaited in an event loop."""
        return self._soon("finish", lambda: self.finish(timeout))

    def _soon(self, what: str, call: Callable[..., V], *, may_give_up: bool = False) -> Future[V]:
        """Call where the loop of the caller goes on, unless the calling thread does the work."""
        work = self._work
        name = f"{work.system.name}-{what}"
        if not (work.crew.has_caller or work.system.is_run_here):
            if may_give_up:
                return Sending(name, lambda future: call(is_given_up=lambda: future.is_given_up))
            return InThread(name, lambda _: call())
        called: Future[V] = Future()
        try:
            called.set_result(call())
        except Exception as error:
            called.set_exception(error)
        return called

    def cancel(self, timeout: float = CANCEL) -> None:
        """Drop the rows on their way, and end. Waits for operators in the middle of a batch,
        `timeout` seconds at most; called again, it goes on waiting. Calls of send() and finish()
        that wait meanwhile raise RunEnded.

        Once no operator is in the middle of a row, the files of sinks are closed. A function of the
        run may call it, too, as when it has seen enough. Then it does not wait, and the next call
        of finish() or cancel() elsewhere closes the files, or the end of the system does.
        """
        if not self._work.ended:
            self._work.life.check_wait("cancel()", "await acancel()")
        self._work.cancel(timeout)

    def acancel(self, timeout: float = CANCEL) -> Future[None]:
        """Like cancel(), but return a future at once, to be awaited in an event loop."""
        return self._soon("cancel", lambda: self._work.cancel(timeout))

    def __enter__(self) -> Self:
        try:
            self._work.life.check_wait("the end of `with`", "use `async with`")
        except WouldBlock:
            self._work.cancel(0.0)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        if kind is None:
            self.finish()
        else:
            with self._work.system._shutdown.leaving(error) as left:
                self.cancel(min(CANCEL, left))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        try:
            if kind is None:
                await self.afinish()
        finally:
            if not self._work.ended:
                with self._work.system._shutdown.leaving(error) as left:
                    cancellation = await until_done(self.acancel(min(CANCEL, left)))
                if cancellation is not None:
                    raise cancellation

    # --- what can be seen ------------------------------------------------------------------------

    @property
    def failure(self) -> StreamError | None:
        """The error by which the run failed; None if it has not. While rows are on their way, that
        of an earlier one may take its place.
        """
        failure = self._work.flow.failure
        return None if failure is None else failure._again()

    def statistics(self) -> RunStatistics:
        """Say how the run does: rows, costs and queues of each operator, and latencies.

        A worker counts when it turns to something else, so until then the latest rows are not in
        it; those of a finished run all are.
        """
        work, flow = self._work, self._work.flow
        at_work = flow.done < flow.admitted  # for as long as an operator likes
        deadline = time.monotonic() + (LOOK if at_work else _LEAVE)
        while work.ended and time.monotonic() < deadline:
            if not work.is_anybody_at_work():
                break
            time.sleep(HELP)
        seconds = time.monotonic() - work.begun
        return collect(flow, self.tally, flow.rows, seconds, work.crew.sites, work.programs)

    def _repr_html_(self) -> str:
        """Show the run's state and figures, for notebooks."""
        return paragraph(repr(self)) + self.statistics()._repr_html_()

    def rebalance(self, policy: Any = None) -> int:
        """Let a placement policy, or the name of one, arrange the `assigned` operators anew; return
        how many move. Without one it is the run's.

        The policy is handed the operators' lanes, which are actors, and move as those do: no row is
        lost or reordered. Raises RunError in a run without such operators; PolicyError,
        ConfigError; CallboardError if there may be no more threads.
        """
        work = self._work
        runtime = work.system._runtime
        runtime.refuse_fork()
        chosen = work.placement if policy is None else choose_placement(policy)
        lanes = [lane for _, lane, _ in work.crew.assigned]
        if not lanes:
            raise RunError(
                f"rebalance() moves operators whose threading is 'assigned', and {self!r} has none"
            )
        team = runtime.team
        moves = rebalance(lanes, team.workers, chosen)
        if team.awaits_need and any(worker.index for _, worker in moves):
            team.need_all()
        for lane, worker in moves:
            worker.take_over(lane)
        return len(moves)

    @overload
    def what_if(self, operator: str, faster: float = 0.2, *, seconds: float = 4.0) -> WhatIf: ...
    @overload
    def what_if(
        self, operator: None = None, faster: float = 0.2, *, seconds: float = 4.0
    ) -> WhatIfs: ...
    def what_if(
        self, operator: str | None = None, faster: float = 0.2, *, seconds: float = 4.0
    ) -> WhatIf | WhatIfs:
        """Predict how many more rows the run would do if an operator took less time: by a part of
        it, 0.2 for a fifth. Without an operator, of each in turn, the largest gain first.

        Nothing gets faster for that. While the operator works, all others are slowed down, and so
        is the sender; then that time is taken off (virtual speed-up: Coz, SOSP 2015). The run is
        slower by that for about half of `seconds`, which an answer takes for each operator. Its
        outputs are the same. Others send meanwhile, as fast as the run takes rows: the answer is
        for the rows that come now.

        Raises RunError if there is no such operator, if the caller's thread runs it, in a manual
        system, during another experiment, and if too few rows come; RunEnded if the run has ended,
        or its StreamError, also meanwhile; ConfigError; CallboardError in an operator.
        WouldBlock in an event loop, where `awhat_if()` is awaited.
        """
        if operator is None:
            return predict_all(self._work, faster, seconds)
        return predict(self._work, operator, faster, seconds)

    @overload
    def awhat_if(
        self, operator: str, faster: float = 0.2, *, seconds: float = 4.0
    ) -> Future[WhatIf]: ...
    @overload
    def awhat_if(
        self, operator: None = None, faster: float = 0.2, *, seconds: float = 4.0
    ) -> Future[WhatIfs]: ...
    def awhat_if(
        self, operator: str | None = None, faster: float = 0.2, *, seconds: float = 4.0
    ) -> Future[WhatIf] | Future[WhatIfs]:
        """Like what_if(), but return a future at once, to be awaited in an event loop."""
        if operator is None:
            return self._soon("what-if", lambda: self.what_if(None, faster, seconds=seconds))
        return self._soon("what-if", lambda: self.what_if(operator, faster, seconds=seconds))

    def progress(self, total: int | None = None, *, every: float = 0.5) -> Progress:
        """Show how the run gets on within a `with` block, on stderr or in a notebook. See
        Progress.
        """
        return Progress(self.statistics, total, every=every)

    def __repr__(self) -> str:
        return repr(self._work)
