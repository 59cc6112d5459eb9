"""Run, the users' handle on a running graph: it sends rows and takes results."""

from __future__ import annotations

import time
from collections.abc import AsyncIterable, Awaitable, Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, overload

from callboard._inside.answers.future import Future
from callboard.core import checks
from callboard.core.errors import ConfigError, WouldBlock
from callboard.core.markup import paragraph
from callboard.run_handle import CANCEL, RunHandle
from callboard.scheduling.placement import make_moves, rebalance
from callboard.scheduling.policies import choose_placement
from callboard.streams.errors import RunError, StreamError
from callboard.streams.experiments.what_if import WhatIf, WhatIfs
from callboard.streams.planning.plan import Plan
from callboard.streams.running.execution import Execution
from callboard.streams.running.experiment import predict, predict_all
from callboard.streams.running.lifecycle import HELP
from callboard.streams.running.results import PulledResults, Results, inputs_of
from callboard.streams.running.statistics import Progress, RunStatistics, collect, describe
from callboard.streams.running.waiting import LOOK
from callboard.streams.snapshots.snapshot import Snapshot
from callboard.system import ActorSystem

if TYPE_CHECKING:
    from callboard.remote.wire.codec import Types

R = TypeVar("R", covariant=True)
T = TypeVar("T")

_LEAVE = 10.0  # seconds that lanes which have ended their last round may take to be gone


class Run(RunHandle[R]):
    """A running graph. Made by `ActorSystem.run`; a context manager: leaving it finishes the run.

    In a coroutine use `async with`. A cancellation while leaving it cancels the run.

    Any thread may call its methods. An actor that waits in one of them helps with the work.
    """

    def __init__(self, system: ActorSystem, plan: Plan, **options: Any) -> None:
        self._system = system
        self._work = Execution(system, plan, **options)
        self.row_counts = self._work.row_counts

    @property
    def entries(self) -> tuple[str, ...]:
        """The names of the graph's entries."""
        return self._work.plan.entries

    # --- rows, and what comes of them -------------------------------------------------------------

    def send(self, entry: str, rows: Iterable[Any], *, timeout: float | None = None) -> None:
        """Send rows into the graph, in order. Rows of several senders are ordered by arrival.

        Waits while `window` batches are in flight, or while `results()` has too many outputs
        pending. If `rows` raises, the rows before that are sent.

        Each exception says what happened to the rows: `sent` of them went in, and `unsent` were
        taken from `rows` but did not go in. So no row of an iterator is lost.

        Args:
            entry: The name of the entry.
            rows: Any iterable. An empty one never waits; it only raises if the run takes no more
                rows.
            timeout: The longest wait for room in seconds. It does not limit how long the iterator
                of `rows` blocks.

        Raises:
            RunTimeout: There was no room in time.
            StreamError: An operator failed. It is raised once no earlier row can fail any more.
            RunEnded: The run was finished or cancelled, maybe during this call.
            RunError: An operator of this run made the call, and would wait for itself.
        """
        self._work.send(entry, rows, timeout=timeout)

    def asend(
        self,
        entry: str,
        rows: Iterable[Any] | AsyncIterable[Any],
        *,
        timeout: float | None = None,
    ) -> Awaitable[None]:
        """Like send(), but return an awaitable, for an event loop.

        Another thread iterates over `rows`, a batch at a time, when there is room. Cancelling the
        `await`, or `cancel()`, ends that: the rows that were taken go in, and the others stay in
        `rows`. Only then is the cancellation raised, so rows that are sent next follow these. A
        second cancellation does not wait, in case a `next()` of `rows` blocks. The awaitable is not
        a coroutine: use `asyncio.ensure_future()` instead of `asyncio.create_task()`.

        Rows of an asynchronous iterable are sent one by one as they arrive, by the `await` itself;
        `timeout` applies to each of them. A row that was taken and found no room is in `unsent` of
        the exception.
        """
        if isinstance(rows, AsyncIterable) and not isinstance(rows, Iterable):
            return self._pour(entry, rows, timeout)
        return self._begin(
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

        A collector has one iterator at a time. When that is closed or dropped, or has raised,
        another call returns one that continues with the outputs not taken yet; `finish()` returns
        only these. A caller's thread that runs operators, and an actor that is not dedicated, must
        use `take()`: waiting would block the senders, so it raises RunError.

        Args:
            rows: Rows for the iterator to send itself, a batch at a time; it finishes the run when
                they end. Then one thread is enough, and at most `window` batches are in flight.
                They are rows of the graph's only entry; or rows by entry, as a dict of iterables,
                whose batches take turns, or as pairs in order of arrival. If the iterable raises,
                the iterator returns the outputs of the rows before that, then raises the exception,
                with `sent` and `unsent` as in `send()`, and the run is cancelled, as it is when the
                iterator is dropped. While the iterable blocks, for example on a socket, no output
                is returned: run the graph with `batch_size=1, window=1` to get the outputs of each
                row first. Without `rows`, another thread sends, or another task with `asend()`.
            name: The collector, if there are several.
            limit: `send()` waits while this many outputs are pending. Batches in flight, `window`
                at most, still add to them. It does not apply with `rows`.

        Raises:
            RunError: There is no such collector, or it has an iterator.
        """
        work = self._work
        work.life.check_caller("results()", by_operators=True)
        limit = checks.whole("limit", limit, 1, error=ConfigError)
        buffer = work.outputs.of(name, work)
        if rows is None:
            return Results(work, buffer)._take_over(limit)
        inputs = inputs_of(rows, work.plan.entries, work.batch_size)
        return PulledResults(work, buffer, inputs)._take_over(None)

    # --- snapshots --------------------------------------------------------------------------------

    @property
    def position(self) -> dict[str, int]:
        """The number of rows of each entry so far, including those of a restored snapshot."""
        return self._work.sent.copy()

    def snapshot(self, types: Types = (), timeout: float | None = None) -> Snapshot:
        """Return the state of all operators. Its `position` says which rows it contains.

        Senders wait until no row is in flight and the state is copied. It contains all rows sent so
        far, collected outputs that were not taken, and the lengths of written files. A run made
        with `restore=SnapshotStore(...)` also writes it to that directory, with the `types` from
        there.

        Raises SnapshotError if an operator cannot be saved, RunTimeout after `timeout` seconds, and
        the errors of `send()` if the run failed or has ended.
        """
        return self._work.snapshot(types, timeout)

    def asnapshot(self, types: Types = (), timeout: float | None = None) -> Future[Snapshot]:
        """Like snapshot(), but return a future to await in an event loop."""
        return self._begin("snapshot", lambda: self.snapshot(types, timeout))

    # --- the end ---------------------------------------------------------------------------------

    def finish(self, timeout: float | None = None) -> R:
        """Flush the operators, wait for their outputs, and return the result.

        From now on the run takes no more rows: `send()` raises RunEnded.

        Returns:
            The outputs of the graph's collector, without those taken from `results()`; a dict of
            lists by name with several collectors, None without one.

        Raises:
            StreamError: The run failed.
            RunEnded: The run was cancelled, or its system stopped.
            RunTimeout: `timeout` seconds have passed. The run continues; call finish() again.
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

    def cancel(self, timeout: float = CANCEL) -> None:
        """End the run, and drop the rows in flight. Waiting send() and finish() raise RunEnded.

        This waits, at most `timeout` seconds, for operators in the middle of a batch; call it again
        to wait longer. The files of sinks are closed once no operator is in the middle of a row. A
        function of the run may also call it, for example when it has seen enough. Then it does not
        wait, and the next finish() or cancel() elsewhere closes the files, or the end of the system
        does.
        """
        if not self._work.ended:
            self._refuse_loop("cancel()", "await acancel()")
        self._work.cancel(timeout)

    def _cancel(self, timeout: float) -> None:
        self._work.cancel(timeout)

    @property
    def _works_here(self) -> bool:
        return self._work.deployment.has_caller or self._system._is_run_here

    def _refuse_loop(self, call: str, instead: str) -> None:
        self._work.life.check_wait(call, instead)

    # --- what can be seen ------------------------------------------------------------------------

    @property
    def failure(self) -> StreamError | None:
        """The error that failed the run; None if there was none.

        While rows are in flight, the error of an earlier row may replace it.
        """
        failure = self._work.flow.failure
        return None if failure is None else failure._again()

    def statistics(self) -> RunStatistics:
        """Return the figures of the run: rows, costs and queues of each operator, and latencies.

        A worker adds its rows when it switches to other work, so the latest rows may be missing
        until the run is finished.
        """
        work, flow = self._work, self._work.flow
        at_work = flow.done < flow.admitted  # for as long as an operator likes
        deadline = time.monotonic() + (LOOK if at_work else _LEAVE)
        while work.ended and time.monotonic() < deadline:
            if not work.is_anybody_at_work():
                break
            time.sleep(HELP)
        seconds = time.monotonic() - work.begun
        return collect(
            flow, self.row_counts, flow.rows, seconds, work.deployment.places, work.programs
        )

    def describe(self) -> str:
        """Return a line for each operator: its name and kind, and where it runs.

        In a system with worker processes, it has the reason for that place, too. The place may
        change: see `OperatorStatistics.reason`.
        """
        work = self._work
        return describe(work.plan.operators, work.deployment.places)

    def _repr_html_(self) -> str:
        """Show the run's state and figures, for notebooks."""
        return paragraph(repr(self)) + self.statistics()._repr_html_()

    def rebalance(self, policy: Any = None) -> int:
        """Let a placement policy move the `assigned` operators. Return how many move.

        The policy, by default the run's, places the operators' lanes, which are actors. No row is
        lost or reordered.

        Raises:
            RunError: The run has no such operators.
            PolicyError, ConfigError: The policy failed, or there is no such policy.
            CallboardError: A new thread is needed and cannot be made.
        """
        work = self._work
        runtime = work.system._runtime
        runtime.refuse_fork()
        chosen = work.placement if policy is None else choose_placement(policy)
        lanes = [lane for _, lane, _ in work.deployment.assigned]
        if not lanes:
            raise RunError(
                f"rebalance() moves operators whose threading is 'assigned', and {self!r} has none"
            )
        team = runtime.team
        moves = rebalance(lanes, team.workers, chosen)
        if team.awaits_need and any(worker.index for _, worker in moves):
            team.need_all()
        return make_moves(moves)

    @overload
    def what_if(self, operator: str, faster: float = 0.2, *, seconds: float = 4.0) -> WhatIf: ...
    @overload
    def what_if(
        self, operator: None = None, faster: float = 0.2, *, seconds: float = 4.0
    ) -> WhatIfs: ...
    def what_if(
        self, operator: str | None = None, faster: float = 0.2, *, seconds: float = 4.0
    ) -> WhatIf | WhatIfs:
        """Predict how many more rows the run would process if an operator took less time.

        While the operator works, all others and the sender are slowed down; that time is then
        subtracted (virtual speed-up: Coz, SOSP 2015). The outputs are the same, and the run is
        slower for about half of the time. Other threads must send rows as fast as the run takes
        them: the prediction is about these rows.

        Args:
            operator: Its name. By default the results for all operators, the largest gain first.
            faster: The part of its time that the operator would save: 0.2 is a fifth.
            seconds: The length of the experiment for each operator.

        Raises:
            RunError: There is no such operator, the caller's thread runs it, worker processes run
                operators, too few rows are sent, another experiment is running, or the system is
                manual.
            RunEnded, StreamError: The run has ended or failed.
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
        """Like what_if(), but return a future to await in an event loop."""
        if operator is None:
            return self._begin("what-if", lambda: self.what_if(None, faster, seconds=seconds))
        return self._begin("what-if", lambda: self.what_if(operator, faster, seconds=seconds))

    def progress(self, total: int | None = None, *, every: float = 0.5) -> Progress:
        """Show the progress within a `with` block, on stderr or in a notebook. See Progress."""
        return Progress(self.statistics, total, every=every)

    def __repr__(self) -> str:
        return repr(self._work)
