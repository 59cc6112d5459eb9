"""The handle of a run of a net, and the iterator of its outputs."""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Self

from callboard._inside.answers.future import Future
from callboard._inside.answers.wait_cause import WaitCause, WaitTarget
from callboard.core import checks
from callboard.core.errors import (
    ActorStopped,
    AskCancelled,
    AskTimeout,
    ConfigError,
)
from callboard.core.handles import public_names
from callboard.core.markup import paragraph
from callboard.core.text import counted, short_repr
from callboard.core.threads.blocking import blocking, in_thread
from callboard.core.threads.interpreter import has_gil
from callboard.nets.drawing import markup_of, mermaid_of_run
from callboard.nets.errors import NetEnded, NetError, NetTimeout
from callboard.nets.kernel.node_builder import parts_within
from callboard.nets.running.coordinator import Coordinator
from callboard.nets.running.messages import (
    Ask,
    Cancel,
    Close,
    Finish,
    GiveBack,
    Limit,
    Look,
    RunDropped,
    SentRows,
    Take,
    Withdraw,
    settle_unread,
)
from callboard.nets.running.net_state import NetState, RunView
from callboard.nets.running.reports import NetProgress, NetStatistics, Trace
from callboard.nets.terms.labels import Record
from callboard.nets.terms.network import Box, Net, Placed, start
from callboard.nets.types.typed import Typed, infer
from callboard.rows.batches import Batches
from callboard.run_handle import CANCEL, RunHandle
from callboard.system import ActorSystem

BATCH = 512
WINDOW = 256
_LOOK = 0.1  # seconds between checks whether a sender gave up


@start.register(Net)
def run_net(
    net: Net, system: ActorSystem, *, placement: Any = None, window: int | None = None
) -> NetRun:
    """Start a net in a system. See `Net`."""
    if window is not None:
        window = checks.whole("window", window, 1, error=ConfigError)
    for part in parts_within(net):
        if isinstance(part, Placed) and not isinstance(part.place, int) and _uses_hints(part):
            system.config.placement_policy(part.place)  # raises ConfigError
    typed = infer(net)
    state, coordinator = _coordinator_of(system, typed, window)
    return NetRun(system, net, state, coordinator, placement=placement)


def _coordinator_of(
    system: ActorSystem, typed: Typed, window: int | None
) -> tuple[NetState, Callable[..., Coordinator]]:
    """Return the state of a run, and what makes its coordinator."""
    config = system.config
    make: Callable[..., Coordinator] | None = None
    if system._runtime.manual:
        state = NetState(typed)
    elif config.processes != 0:
        from callboard.nets.running import process_coordinator as processes

        state = NetState(typed, moves=processes.moves_in(system))
        if state.moving:
            make = processes.coordinator_of(system, state, window)
    elif config.workers > 1 and not has_gil():
        from callboard.nets.running import worker_coordinator as workers

        state = NetState(typed, moves=workers.moves)
        if state.moving:
            make = workers.coordinator_of(config.workers, state, window)
    else:
        state = NetState(typed)
    return state, make or partial(Coordinator, state, window or WINDOW)


def _uses_hints(net: Net) -> bool:
    return any(isinstance(part, Box) and part.options.threads for part in parts_within(net))


class NetRun(RunHandle[list[Record]]):
    """A running net. Made by `ActorSystem.run`; a context manager: leaving it finishes the run.

    If a `with` block fails, the run is cancelled, and the block's error is raised.

    Any thread and any actor may call its methods.
    """

    def __init__(
        self,
        system: ActorSystem,
        net: Net,
        state: NetState,
        coordinator: Callable[..., Coordinator],
        *,
        placement: Any,
    ) -> None:
        self._system = system
        self._net = net
        # Where priorities are used, coordination goes before boxes (Prokesch 2011, 6.2.2).
        options: dict[str, Any] = {"priority": 1}
        if placement is not None:
            options["placement"] = placement
        self._coordinator = system.spawn(coordinator, **options)
        settle_unread(system.dead_letters, self._coordinator)
        self._view = RunView(net, self._coordinator, state)
        system._observer.add_graph(self._view)
        state.on_end = self._view.note_end

    def send(self, records: Iterable[Any], *, timeout: float | None = None) -> None:
        """Send records into the net, in order: dicts of values by labels, or dataclass instances.

        Waits while `window` records are in flight at boxes that run elsewhere, or while too many
        `results()` have not been taken. A record that fits nowhere in the net ends the run.

        Args:
            records: An iterable of records, or one dict, which is one record.
            timeout: The longest wait in seconds.

        Raises:
            RecordError: One is not a record, or has a tag that is not an integer. The run
                continues.
            NetTimeout: Not all records went in within `timeout` seconds.
            NetEnded: The run was finished or cancelled.
            NetError: The run has failed with this error.

        Each exception says what happened to the records: `sent` of them went in, and `unsent` were
        taken from `records` but did not go in.
        """
        self._refuse_loop("send()", "await asend(), or tell_many()")
        self._send(records, timeout)

    def asend(self, records: Iterable[Any], *, timeout: float | None = None) -> Future[None]:
        """Like send(), but return a future to await in an event loop.

        Another thread iterates over `records`. Cancelling the `await`, or `cancel()`, ends the
        iteration; only then is the cancellation raised, with `sent` and `unsent`. A second
        cancellation does not wait, in case a `next()` of `records` blocks.
        """
        return self._begin("send", partial(self._send, records, timeout), may_give_up=True)

    def _send(
        self,
        records: Iterable[Any],
        timeout: float | None,
        is_given_up: Callable[[], bool] | None = None,
    ) -> None:
        deadline = _deadline(timeout)
        if isinstance(records, Mapping):
            records = [records]
        batches = Batches("send()", records, BATCH, is_given_up)
        sent = 0
        for batch in batches:
            rows = SentRows(batch)
            try:
                self._wait_until_in(rows, deadline, is_given_up)
            except BaseException as raised:
                error = raised
                if isinstance(error, NetTimeout | AskCancelled):
                    self._answer("send", Withdraw(rows), None)
                    by_then = f"in {timeout} s" if isinstance(error, NetTimeout) else "by then"
                    error = type(error)(
                        f"{counted(sent + rows.sent, 'record')} went into {self!r} {by_then}, and "
                        f"{len(batch) - rows.sent} of those that were taken did not"
                    )
                error.sent, error.unsent = sent + rows.sent, batch[rows.sent :]  # type: ignore[attr-defined]
                raise error from raised.__cause__
            sent += len(batch)

    def _wait_until_in(
        self, rows: SentRows, deadline: float | None, is_given_up: Callable[[], bool] | None
    ) -> None:
        """Send records, and wait until they are in. Raises AskCancelled if the caller gives up
        before.
        """
        asked = self._coordinator.ask(rows)
        while is_given_up is not None and not asked.done():
            if is_given_up():
                raise AskCancelled(f"a send to {self!r} was cancelled")
            if deadline is not None and time.monotonic() >= deadline:
                break
            with suppress(AskTimeout):
                asked.exception(_LOOK)
        self._wait("send", asked, deadline)

    def tell(self, record: Any, /) -> None:
        """Send one record without waiting until it has gone in. This makes a run a Recipient.

        A record that the net does not accept becomes a dead letter, "refused"; one that does not go
        in before the run's end, "stopped".
        """
        self._coordinator.tell(SentRows([record], told=True))

    def tell_many(self, records: Iterable[Any], /) -> None:
        """Send records in order, without waiting until they have gone in."""
        for batch in Batches("tell_many()", records, BATCH):
            self._coordinator.tell(SentRows(batch, told=True))

    def ask(self, record: Any, /, timeout: float | None = None) -> Future[list[Record]]:
        """Send one record, and return a future of the outputs that it alone causes.

        The future is done once the record can cause no more outputs: all have left, or are kept in
        a synchrocell. An error in a box fails this future, not the run.
        """
        answer = _Answer(self._coordinator)
        answer.run_asked, answer.record = weakref.ref(self), record

        def take(of: Future[Any]) -> None:
            error = of.exception()
            if error is None:
                answer.set_result(of.result()[0])
            elif isinstance(error, AskTimeout):
                answer.set_exception(NetTimeout(f"{answer._no_answer()} in {timeout} s"))
            else:
                answer.set_exception(error)

        self._coordinator.ask(Ask(record), timeout).add_done_callback(take)
        return answer

    def trace(self, record: Any, timeout: float | None = None) -> Trace:
        """Send one record, wait until it is processed, and return its path through the net.

        Raises the errors of `ask`, and NetTimeout after `timeout` seconds.
        """
        self._refuse_loop("trace()", "await atrace()")
        outputs, steps = self._answer("trace", Ask(record, traced=True), _deadline(timeout))
        return Trace(outputs, steps)

    def atrace(self, record: Any, timeout: float | None = None) -> Future[Trace]:
        """Like trace(), but return a future to await in an event loop."""
        return self._begin("trace", partial(self.trace, record, timeout))

    def results(self, records: Iterable[Any] | None = None, *, limit: int = 65_536) -> NetResults:
        """Return an iterator of the outputs as they arrive, for `for` and `async for`.

        It ends once the run is finished and all outputs are taken, and raises the run's error if it
        has failed. `finish()` returns the outputs that were not taken, including those that an
        iterator had fetched when it was closed or dropped.

        Args:
            records: Records for the iterator to send from another thread. It then finishes the run.
            limit: The number of pending outputs at which sent records wait.
        """
        return NetResults(self, checks.whole("limit", limit, 1, error=ConfigError), records)

    def finish(self, timeout: float | None = None) -> list[Record]:
        """Wait until the net is done, and return the outputs that were not taken.

        From now on, the run takes no more records, and outputs have no limit. Records in unfinished
        synchrocells become dead letters, "unpaired".

        Raises:
            NetTimeout: `timeout` seconds have passed. The run continues; call finish() again.
            NetEnded: The run was cancelled.
            NetError: The run has failed with this error.
        """
        self._refuse_loop("finish()", "await afinish()")
        finish = Finish()
        try:
            outputs: list[Record] = self._answer("finish", finish, _deadline(timeout))
        except BaseException:
            self._coordinator.tell(Withdraw(finish))
            raise
        return outputs

    def cancel(self, timeout: float = CANCEL) -> None:
        """End the run. Records in flight become dead letters, "stopped".

        Raises NetTimeout if a box is still working after `timeout` seconds. The run then ends when
        the box does.
        """
        if self._coordinator.is_alive:
            self._refuse_loop("cancel()", "await acancel()")
        self._cancel(timeout)

    def _cancel(self, timeout: float) -> None:
        try:
            self._answer("cancel", Cancel(), time.monotonic() + timeout)
        except NetEnded:
            return

    def statistics(self) -> NetStatistics:
        """Return the figures of the run."""
        found: NetStatistics = self._answer("statistics", Look(), None)
        return found

    def mermaid(self) -> str:
        """Draw the net with the number of records that reached each place, and the replicas."""
        return mermaid_of_run(self._net, self.statistics().places)

    def _repr_html_(self) -> str:
        """Draw the net as it is now, for notebooks."""
        return paragraph(repr(self)) + markup_of(self._net, self.statistics().places)

    def progress(self, *, every: float = 0.5) -> NetProgress:
        """Show the run's progress within a `with` block, on stderr or in a notebook."""
        return NetProgress(self.statistics, every)

    def _answer(self, call: str, message: Any, deadline: float | None) -> Any:
        return self._wait(call, self._coordinator.ask(message), deadline)

    def _wait(self, call: str, future: Future[Any], deadline: float | None) -> Any:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        try:
            with blocking():  # calls that may take long were refused before
                error = future.exception(left)
            if isinstance(error, NetError):
                raise error._again()  # the coordinator keeps the other, without the caller's frames
            return future.result()
        except AskTimeout:
            why = self._why_idle() if self._works_here else " in time"
            raise NetTimeout(f"{call}() of {self!r} did not end{why}") from None
        except ActorStopped as error:
            raise NetEnded(f"{self!r} has ended: {error}") from error

    def _why_idle(self) -> str:
        """Describe what a run waits for on a manual system that is idle."""
        seen = self.statistics()
        waits = [f"calls of {path}, {number}" for path, number in seen.calls.items()]
        if seen.in_cells:
            waits.append(f"records for cells, {seen.in_cells}")
        what = "; ".join(waits) or "nothing in the net"
        return f", and its system is idle. It waits for {what}"

    def __del__(self) -> None:
        try:  # noqa: SIM105 - `suppress` may be gone at the end of the interpreter
            self._coordinator.tell(RunDropped())
        except Exception:  # the system is gone, or the interpreter ends
            pass

    def __repr__(self) -> str:
        return f"<NetRun of {str(self._net)[:60]}>"


def _deadline(timeout: float | None) -> float | None:
    seconds = checks.timeout("timeout", timeout, error=ConfigError)
    return None if seconds is None else time.monotonic() + seconds


class _Answer(Future[Any]):
    """The answer to an ask of a run."""

    __slots__ = ("run_asked", "record")

    run_asked: weakref.ref[NetRun]
    record: Any

    @property
    def _wait_cause(self) -> WaitCause:
        return WaitCause(WaitTarget.ANSWER)

    def _no_answer(self) -> str:
        run = self.run_asked()
        if run is None:
            return super()._no_answer()
        calls = [f"{path} ({number})" for path, number in run._view.figures()["calls"].items()]
        where = f", where calls run at {', '.join(calls)}," if calls else ""
        return f"no answer to {short_repr(self.record)} from {run!r}{where}"

    def _was_run_here(self, timeout: float | None) -> bool:
        """Run a manual system until the answer is there. AskTimeout says why it does not come."""
        try:
            return super()._was_run_here(timeout)
        except AskTimeout:
            run = self.run_asked()
            if run is None:
                raise
            raise AskTimeout(f"ask() of {run!r} has no answer{run._why_idle()}") from None


class NetResults:
    """An iterator of a run's outputs. See NetRun.results()."""

    __dir__ = public_names

    def __init__(self, run: NetRun, limit: int, records: Iterable[Any] | None = None) -> None:
        self._run = run
        self._fetched: deque[Record] = deque()
        self._limit = Limit(limit)
        run._coordinator.tell(self._limit)
        self._error: BaseException | None = None
        if records is not None:
            threading.Thread(target=self._send, args=(records,), daemon=True).start()

    def _send(self, records: Iterable[Any]) -> None:
        """Send the records, and have the run end after them. In a separate thread."""
        try:
            self._run._send(records, None)
        except NetEnded as error:  # another caller has ended the run
            self._error = error
        except BaseException as error:
            self._error = error
            with suppress(NetTimeout):  # it ends later
                self._run._cancel(CANCEL)
        else:
            self._run._coordinator.tell(Close())

    def _ask_for_outputs(self) -> Take:
        take = Take(Future(self._run._coordinator))
        self._run._coordinator.tell(take)
        return take

    def _wait_for(self, take: Take) -> None:
        """Wait for outputs, and keep them for the next calls."""
        try:
            self._fetched.extend(self._run._wait("results", take.answer, None))
        except NetEnded:
            if self._error is not None:
                raise self._error from None
            raise

    def close(self) -> None:
        """Return fetched outputs to the run, for `finish()` or other `results()`."""
        left = [*self._fetched]
        self._fetched.clear()
        if left:
            self._run._coordinator.tell(GiveBack(left))
        self._run._coordinator.tell(Withdraw(self._limit))

    def __del__(self) -> None:
        with suppress(Exception):  # the system is gone, or the interpreter ends
            self.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Record:
        if not self._fetched:
            self._run._refuse_loop("results()", "take them by `async for`")
            self._wait_for(self._ask_for_outputs())
        if not self._fetched:
            raise StopIteration
        return self._fetched.popleft()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Record:
        if not self._fetched:
            take = self._ask_for_outputs()
            try:
                await in_thread(self._wait_for, take)
            except BaseException as error:
                if not isinstance(error, Exception):  # cancelled
                    self._run._coordinator.tell(Withdraw(take))
                raise
        if not self._fetched:
            raise StopAsyncIteration
        return self._fetched.popleft()
