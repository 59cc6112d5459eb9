"""The handle of a run of a net, and the iterator of its outputs."""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import Any, Self, TypeVar

from callboard._inside.answers.future import Future
from callboard._inside.answers.wait_cause import WaitCause, WaitTarget
from callboard.core import checks
from callboard.core.errors import (
    ActorStopped,
    AskCancelled,
    AskTimeout,
    ConfigError,
    WouldBlock,
)
from callboard.core.handles import CopiedAsItself, public_names
from callboard.core.markup import paragraph
from callboard.core.text import counted, short_repr
from callboard.core.threads.blocking import blocking, in_thread, refuse_to_block
from callboard.in_thread import InThread, Sending, until_done
from callboard.nets.drawing import markup_of, mermaid_of_run
from callboard.nets.errors import NetEnded, NetError, NetTimeout
from callboard.nets.kernel.building import parts_within
from callboard.nets.running.conductor import Conductor
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
from callboard.nets.types.typed import infer
from callboard.rows.batches import Batches
from callboard.system import ActorSystem

V = TypeVar("V")

BATCH = 512
CANCEL = 5.0  # seconds that a cancelled run may take
_LOOK = 0.1  # seconds between looks whether a sender is given up


@start.register(Net)
def run_net(net: Net, system: ActorSystem, *, placement: Any = None, window: int = 256) -> NetRun:
    """Start a net in a system. See `Net`."""
    window = checks.whole("window", window, 1, error=ConfigError)
    for part in parts_within(net):
        if isinstance(part, Placed) and not isinstance(part.place, int) and _uses_hints(part):
            system.config.placement_policy(part.place)  # raises ConfigError
    return NetRun(system, net, NetState(infer(net)), placement=placement, window=window)


def _uses_hints(net: Net) -> bool:
    return any(isinstance(part, Box) and part.options.threads for part in parts_within(net))


class NetRun(CopiedAsItself):
    """A net at work. Made by `ActorSystem.run`; a context manager: leaving it finishes the run.

    A `with` block that fails cancels the run, and the error of the block is raised.

    Its methods may be called from any thread, and from actors.
    """

    def __init__(
        self, system: ActorSystem, net: Net, state: NetState, *, placement: Any, window: int
    ) -> None:
        self._net = net
        # Where priorities are used, coordination goes before boxes (Prokesch 2011, 6.2.2).
        options: dict[str, Any] = {"priority": 1}
        if placement is not None:
            options["placement"] = placement
        self._conductor = system.spawn(Conductor, state, window, **options)
        settle_unread(system.dead_letters, self._conductor)
        self._view = RunView(net, self._conductor, state)
        system._observer.add_graph(self._view)
        state.on_end = self._view.note_end

    def send(self, records: Iterable[Any], *, timeout: float | None = None) -> None:
        """Send records into the net, in order: dicts of values by labels, or dataclass instances.

        One dict is one record. Waits while `window` records are on their way at boxes that run
        elsewhere, or too many `results()` are not taken. Raises RecordError for what is no record,
        or has a tag that is no integer; the run goes on. A record that fits nowhere in the net ends
        the run. Raises NetTimeout if not all went in after `timeout` seconds, the run's error
        once the run has failed, and NetEnded when it was finished or cancelled. Each says what
        became of the records: `sent` of them went in, and `unsent` are those that were taken from
        `records` and did not go in.
        """
        self._refuse_loop("send()", "await asend(), or tell_many()")
        self._send(records, timeout)

    def asend(self, records: Iterable[Any], *, timeout: float | None = None) -> Future[None]:
        """Like send(), but return a future at once, to be awaited in an event loop.

        Another thread goes through `records`. A cancelled `await`, or `cancel()`, ends that; only
        then is the cancellation raised, and it has `sent` and `unsent`. A second cancellation does
        not wait, as for a `next()` of `records` that blocks.
        """
        return self._soon("send", partial(self._send, records, timeout), may_give_up=True)

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
        """Hand records over, and wait until they are in. Raises AskCancelled if they are not when
        that is given up.
        """
        asked = self._conductor.ask(rows)
        while is_given_up is not None and not asked.done():
            if is_given_up():
                raise AskCancelled(f"a send to {self!r} was given up")
            if deadline is not None and time.monotonic() >= deadline:
                break
            with suppress(AskTimeout):
                asked.exception(_LOOK)
        self._wait("send", asked, deadline)

    def tell(self, record: Any, /) -> None:
        """Send one record, and do not wait until it is in. See Recipient: a run can be told.

        A record that the net does not take becomes a dead letter, "refused". One that does not go
        in before the run's end is "stopped".
        """
        self._conductor.tell(SentRows([record], told=True))

    def tell_many(self, records: Iterable[Any], /) -> None:
        """Send records, in their order, and do not wait until they are in."""
        for batch in Batches("tell_many()", records, BATCH):
            self._conductor.tell(SentRows(batch, told=True))

    def ask(self, record: Any, /, timeout: float | None = None) -> Future[list[Record]]:
        """Send one record, and return a future of the outputs that come of it, and of no other.

        It is there when nothing more comes of the record: all has left, or is kept in a
        synchrocell. An error in a box fails this future, and not the run.
        """
        answer = _Answer(self._conductor)
        answer.run_asked, answer.record = weakref.ref(self), record

        def take(of: Future[Any]) -> None:
            error = of.exception()
            if error is None:
                answer.set_result(of.result()[0])
            elif isinstance(error, AskTimeout):
                answer.set_exception(NetTimeout(f"{answer._no_answer()} in {timeout} s"))
            else:
                answer.set_exception(error)

        self._conductor.ask(Ask(record), timeout).add_done_callback(take)
        return answer

    def trace(self, record: Any, timeout: float | None = None) -> Trace:
        """Send one record, wait until nothing more comes of it, and say all that it went through.

        Raises as `ask` does, and NetTimeout after `timeout` seconds.
        """
        self._refuse_loop("trace()", "await atrace()")
        outputs, steps = self._answer("trace", Ask(record, traced=True), _deadline(timeout))
        return Trace(outputs, steps)

    def atrace(self, record: Any, timeout: float | None = None) -> Future[Trace]:
        """Like trace(), but return a future at once, to be awaited in an event loop."""
        return self._soon("trace", lambda: self.trace(record, timeout))

    def results(self, records: Iterable[Any] | None = None, *, limit: int = 65_536) -> NetResults:
        """Return an iterator of the outputs as they come, for `for` and `async for`.

        It ends when the run was finished and all is taken, and raises the run's error if it has
        failed. While `limit` outputs wait to be taken, records wait. Outputs that were taken are
        not in what `finish()` returns; those that the iterator has in hand when it is closed or
        dropped are. With `records`, the iterator sends them itself from another thread, and
        finishes the run.
        """
        return NetResults(self, checks.whole("limit", limit, 1, error=ConfigError), records)

    def finish(self, timeout: float | None = None) -> list[Record]:
        """Wait until nothing more can come, and return the outputs that were not taken.

        From the call on, the run takes no more records, and outputs have no limit. Records that are
        left in unfinished synchrocells become dead letters, "unpaired". Raises the error of a run
        that failed, NetEnded of one that was cancelled, and NetTimeout after `timeout` seconds;
        then the run goes on, and finish() may be called again.
        """
        self._refuse_loop("finish()", "await afinish()")
        return self._finish(timeout)

    def afinish(self, timeout: float | None = None) -> Future[list[Record]]:
        """Like finish(), but return a future at once, to be awaited in an event loop."""
        return self._soon("finish", lambda: self._finish(timeout))

    def _finish(self, timeout: float | None) -> list[Record]:
        finish = Finish()
        try:
            outputs: list[Record] = self._answer("finish", finish, _deadline(timeout))
        except BaseException:
            self._conductor.tell(Withdraw(finish))
            raise
        return outputs

    def cancel(self, timeout: float = CANCEL) -> None:
        """Drop the records on their way, and end. They become dead letters, "stopped".

        Raises NetTimeout if a box is still at work after `timeout` seconds. The run then ends when
        the box does.
        """
        if self._conductor.is_alive:
            self._refuse_loop("cancel()", "await acancel()")
        self._cancel(timeout)

    def acancel(self, timeout: float = CANCEL) -> Future[None]:
        """Like cancel(), but return a future at once, to be awaited in an event loop."""
        return self._soon("cancel", lambda: self._cancel(timeout))

    def _cancel(self, timeout: float) -> None:
        try:
            self._answer("cancel", Cancel(), time.monotonic() + timeout)
        except NetEnded:
            return

    def statistics(self) -> NetStatistics:
        """Say how the run does."""
        found: NetStatistics = self._answer("statistics", Look(), None)
        return found

    def mermaid(self) -> str:
        """Draw the net as it is now: the records that came to each place, and the replicas."""
        return mermaid_of_run(self._net, self.statistics().places)

    def _repr_html_(self) -> str:
        """Draw the net as it is now, for notebooks."""
        return paragraph(repr(self)) + markup_of(self._net, self.statistics().places)

    def progress(self, *, every: float = 0.5) -> NetProgress:
        """Show how the run gets on within a `with` block, on stderr or in a notebook."""
        return NetProgress(self.statistics, every)

    @property
    def _is_run_here(self) -> bool:
        system = self._conductor.system
        return system is not None and system.is_run_here

    def _refuse_loop(self, call: str, instead: str) -> None:
        """Refuse to wait where that would block an event loop."""
        if not self._is_run_here:
            refuse_to_block(f"{call} of {self!r}", instead)

    def _soon(self, what: str, call: Callable[..., V], *, may_give_up: bool = False) -> Future[V]:
        """Call where the loop of the caller goes on, unless the calling thread does the work."""
        if not self._is_run_here:
            if may_give_up:
                return Sending(
                    f"net-{what}", lambda future: call(is_given_up=lambda: future.is_given_up)
                )
            return InThread(f"net-{what}", lambda _: call())
        called: Future[V] = Future()
        try:
            called.set_result(call())
        except Exception as error:
            called.set_exception(error)
        return called

    def _answer(self, call: str, message: Any, deadline: float | None) -> Any:
        return self._wait(call, self._conductor.ask(message), deadline)

    def _wait(self, call: str, future: Future[Any], deadline: float | None) -> Any:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        try:
            with blocking():  # calls that take their time were refused before
                error = future.exception(left)
            if isinstance(error, NetError):
                raise error._again()  # the actor keeps the other one, and no frames of the caller's
            return future.result()
        except AskTimeout:
            why = self._why_idle() if self._is_run_here else " in time"
            raise NetTimeout(f"{call}() of {self!r} did not end{why}") from None
        except ActorStopped as error:
            raise NetEnded(f"{self!r} has ended: {error}") from error

    def _why_idle(self) -> str:
        """Say what a run waits for on a manual system that has nothing to do."""
        seen = self.statistics()
        waits = [f"calls of {path}, {number}" for path, number in seen.calls.items()]
        if seen.in_cells:
            waits.append(f"records for cells, {seen.in_cells}")
        what = "; ".join(waits) or "nothing in the net"
        return f", and its system is idle. It waits for {what}"

    def __enter__(self) -> Self:
        try:
            self._refuse_loop("the end of `with`", "use `async with`")
        except WouldBlock:
            self._conductor.tell(RunDropped())
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        if kind is None:
            self.finish()
        else:
            # The block's error says more than a NetTimeout.
            with suppress(NetTimeout), self._leaving(error) as left:
                self.cancel(min(CANCEL, left))

    def _leaving(self, error: BaseException | None) -> AbstractContextManager[float]:
        system = self._conductor.system
        return nullcontext(CANCEL) if system is None else system._shutdown.leaving(error)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        is_finished = False
        try:
            if kind is None:
                await self.afinish()
                is_finished = True
        finally:
            if not is_finished:
                with self._leaving(error) as left:
                    cancellation = await until_done(self.acancel(min(CANCEL, left)))
                if cancellation is not None:
                    raise cancellation

    def __del__(self) -> None:
        with suppress(Exception):  # the system is gone, or the interpreter ends
            self._conductor.tell(RunDropped())

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
        self._taken: deque[Record] = deque()
        self._limit = Limit(limit)
        run._conductor.tell(self._limit)
        self._error: BaseException | None = None
        if records is not None:
            threading.Thread(target=self._send, args=(records,), daemon=True).start()

    def _send(self, records: Iterable[Any]) -> None:
        """Send the records, and have the run end after them. On a thread of its own."""
        try:
            self._run._send(records, None)
        except NetEnded as error:  # others have ended the run
            self._error = error
        except BaseException as error:
            self._error = error
            with suppress(NetTimeout):  # it ends later
                self._run._cancel(CANCEL)
        else:
            self._run._conductor.tell(Close())

    def _ask_for_outputs(self) -> Take:
        take = Take(Future(self._run._conductor))
        self._run._conductor.tell(take)
        return take

    def _wait_for(self, take: Take) -> None:
        """Wait for outputs, and have them in hand."""
        try:
            self._taken.extend(self._run._wait("results", take.answer, None))
        except NetEnded:
            if self._error is not None:
                raise self._error from None
            raise

    def close(self) -> None:
        """Give back the outputs in hand: `finish()`, or other `results()`, have them next."""
        left = [*self._taken]
        self._taken.clear()
        if left:
            self._run._conductor.tell(GiveBack(left))
        self._run._conductor.tell(Withdraw(self._limit))

    def __del__(self) -> None:
        with suppress(Exception):  # the system is gone, or the interpreter ends
            self.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Record:
        if not self._taken:
            self._run._refuse_loop("results()", "take them by `async for`")
            self._wait_for(self._ask_for_outputs())
        if not self._taken:
            raise StopIteration
        return self._taken.popleft()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Record:
        if not self._taken:
            take = self._ask_for_outputs()
            try:
                await in_thread(self._wait_for, take)
            except BaseException as error:
                if not isinstance(error, Exception):  # cancelled
                    self._run._conductor.tell(Withdraw(take))
                raise
        if not self._taken:
            raise StopAsyncIteration
        return self._taken.popleft()
