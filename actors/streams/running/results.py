"""Outputs of a run that are handed out as they are made."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from callboard.core.batches import Batches, is_table
from callboard.core.text import safe_repr
from callboard.scheduling.worker import shares_worker_here
from callboard.streams.checks import check_entry
from callboard.streams.errors import RunError, RunTimeout
from callboard.streams.running.callers import caller_here
from callboard.streams.running.untaken import Untaken

if TYPE_CHECKING:
    from callboard.streams.running.run import Run

T = TypeVar("T")
Inputs = Iterator[tuple[str, list[Any]]]

_MOMENT = 0.1  # seconds: how often who waits for room looks whether there is something else to do
_GRACE = 1.0  # seconds that operators have to come to an end when nobody wants their outputs


class Results(Generic[T]):
    """An iterator of what a collector gets, in order, as it is made. Made by `Run.results`.

    It waits until something has come, and ends when the run was finished and all is taken. At a
    failure what came before is handed out, and then the run's StreamError is raised; RunEnded, when
    the run was cancelled or its system stopped. What was handed out is let go of. `async for` does
    the same without blocking the event loop. Several threads may take, and each output goes to one.

    It lets go of the output when it is closed, dropped, or has raised, or when the thread or the
    task that took is over. Then `Run.results()` gives another one, which goes on with what is not
    taken. This one raises RunError from then on.
    """

    def __init__(self, run: Run[Any], untaken: Untaken[T]) -> None:
        self._run = run
        self._untaken = untaken
        self._hand = untaken.hand

    def _take_over(self, limit: int | None) -> Self:
        """Go on where the last iterator of the same outputs was. Raises RunError if it is at it."""
        if not self._untaken.hand_over(self, limit):
            gc.collect()  # a traceback may keep an iterator that nobody can reach
            if not self._untaken.hand_over(self, limit):
                raise RunError(
                    f"somebody has the results() of {self._untaken.name!r} already: there is a new "
                    "iterator when that one is closed or dropped, or has raised"
                )
        self._hand = self._untaken.hand
        return self

    @property
    def untaken(self) -> int:
        """How many outputs wait to be taken."""
        return len(self._untaken)

    def take(self) -> list[T]:
        """Return all outputs that there are, without waiting, whatever has become of the run."""
        self._run._refuse_other_callers("take")
        self._check_is_taker()
        return self._untaken.take_all()

    def close(self) -> None:
        """Leave to `finish()`, or to other `results()`, what is not taken: `send()` waits for
        takers no more.
        """
        if self._is_taker():
            self._untaken.unbind()
            self._untaken.is_free = True

    def _is_taker(self) -> bool:
        return self._hand is self._untaken.hand

    def _check_is_taker(self) -> None:
        if not self._is_taker():
            raise RunError(
                f"this iterator had let go of {self._untaken.name!r}, and another call of "
                "results() has it"
            )

    def _let_go(self) -> None:
        if self._is_taker():
            self._untaken.is_free = True

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        try:
            return self._hand.pop()
        except IndexError:
            return self._next()

    def _next(self) -> T:
        untaken = self._untaken
        self._run._refuse_other_callers("results")
        self._check_is_taker()
        untaken.use(threading.current_thread())
        try:
            while True:
                try:
                    return untaken.take_one()
                except IndexError:
                    if not self._more():
                        raise StopIteration from None
                    self._check_is_taker()
        except BaseException:
            self._let_go()
            raise

    def _more(self) -> bool:
        """Wait until something may have come. False: nothing will, and all is taken."""
        run, flow = self._run, self._run._flow
        run._refuse_own_operators("results")
        ended = run._ended  # first: what came before the end is seen by all later looks
        may_end = run._flushed or flow.failure is not None
        done, admitted = flow.done, flow.admitted  # what comes after this look ends the wait
        if self.untaken:
            return True
        if ended or (may_end and done >= admitted):
            if flow.is_stopped:
                raise run._why_ended(f"{run!r} was cancelled, or its system was stopped")
            return False
        if done >= admitted:
            _refuse_to_wait(run, "results()", "no row is on its way")
        run._wait_a_turn(done + 1)
        return True

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        untaken = self._untaken
        self._refuse_async()
        self._run._refuse_other_callers("results")
        self._check_is_taker()
        untaken.use(asyncio.current_task())
        try:
            while True:
                try:
                    return untaken.take_one()
                except IndexError:
                    # In turns of a tenth of a second: so long its thread outlives a cancelled task.
                    if not await asyncio.to_thread(self._more):
                        raise StopAsyncIteration from None
                    self._check_is_taker()
        except BaseException:
            self._let_go()
            raise

    def _refuse_async(self) -> None:
        """Raise RunError where `async for` would block."""

    def __repr__(self) -> str:
        return f"<Results of {self._untaken.name!r}, {self.untaken} untaken>"


class PulledResults(Results[T]):
    """The same, of rows that it sends itself whenever nothing waits to be handed out.

    At the end of the rows it finishes the run. Closing it cancels the run, and so does letting it
    go; what has begun has a second to come to an end. One thread at a time takes.
    """

    def __init__(self, run: Run[Any], untaken: Untaken[T], inputs: Inputs) -> None:
        super().__init__(run, untaken)
        self._pulling = _pull(run, untaken, inputs)
        self._turn = threading.Lock()  # held by who sends

    def _more(self) -> bool:
        if not self._turn.acquire(blocking=False):
            raise RunError(
                f"results() with rows is for one taker at a time, and another one, or the rows "
                f"themselves, takes those of {self._run!r}"
            )
        try:
            return next(self._pulling, False) or self.untaken > 0
        finally:
            self._turn.release()

    def close(self) -> None:
        """Cancel the run; whoever is taking gets RunEnded."""
        if self._turn.acquire(blocking=False):
            try:
                self._pulling.close()
            finally:
                self._turn.release()
        self._run.cancel(_GRACE)
        super().close()

    def _let_go(self) -> None:
        """Go on: it has the run, which ends with it."""

    def _refuse_async(self) -> None:
        raise RunError(
            "`async for` of results() with rows would block the event loop while they are sent: "
            "send them by asyncio.to_thread(), and give results() none"
        )


def results_of(run: Run[Any], rows: Any, name: str | None, limit: int) -> Results[Any]:
    """Make what `Run.results` returns, which describes the arguments."""
    collected = run._collected
    if not collected:
        raise RunError(f"results() are what a collect() gets, and {run!r} has none")
    if name is None and len(collected) == 1:
        (name,) = collected
    if not isinstance(name, str) or name not in collected:
        has = ", ".join(map(repr, collected))
        raise RunError(
            f"results() wants the name of one of the collectors {has}, not {safe_repr(name)}"
        )
    with run._claim:
        untaken = run._untaken.get(name)
        if untaken is None:
            untaken = Untaken(name, collected[name], None)
            run._untaken = {**run._untaken, name: untaken}  # a sender may be going through it
    if rows is None:
        return Results(run, untaken)._take_over(limit)
    return PulledResults(run, untaken, _inputs(rows, run))._take_over(None)


def await_takers(run: Run[Any], deadline: float | None) -> None:
    """Wait until those who have a run's results have taken enough. As `Run.send`, which it is for,
    raises RunTimeout and RunEnded; RunError if they could not.
    """
    for untaken in run._untaken.values():
        if not untaken.is_full():
            continue
        while not untaken.has_room():
            run._refuse_if_ended(deadline)
            why = f"{len(untaken)} outputs of {untaken.name!r} wait to be taken by results()"
            if deadline is not None and monotonic() >= deadline:
                raise RunTimeout(f"no room came in time in {run!r}: {why}")
            _refuse_to_wait(run, "send()", why)
            if untaken.loop is threading.current_thread():
                raise RunError(f"send() would block the event loop, on which {why}")
            if not run._system.is_run_here:
                untaken.wait_for_taker(_MOMENT)
            elif not run._system._run_until(untaken.has_room, None):
                raise RunError(f"{run!r} waits, and nothing is ready: {why}")


def _refuse_to_wait(run: Run[Any], call: str, why: str) -> None:
    """Refuse to wait for another thread, or actor, where that one could not come."""
    if run._crew.has_caller and run._caller is caller_here():
        raise RunError(f"{call} waits for nobody, as others may not call {run!r}: {why}")
    if shares_worker_here():
        raise RunError(f"{call} in an actor without dedicated=True holds up its worker: {why}")


def _inputs(rows: Any, run: Run[Any]) -> Inputs:
    """Check what `results()` is to send, as far as it is there, and say in which order."""
    entries, size = tuple(run._sent), run._batch_size
    if isinstance(rows, Mapping):
        for name in rows:
            check_entry(name, entries)
        return _in_turns({name: Batches("results()", of, size) for name, of in rows.items()})
    if len(entries) == 1:
        return _in_turns({entries[0]: Batches("results()", rows, size)})
    if isinstance(rows, str | bytes) or not isinstance(rows, Iterable) or is_table(rows):
        raise RunError(f"results() wants rows by their entries, not {safe_repr(rows)}")
    return _in_order(rows, size)


def _in_turns(entries: dict[str, Batches]) -> Inputs:
    """Give the next batch of each entry in turn, as long as it has any."""
    while entries:
        for name, batches in [*entries.items()]:
            if batch := _next_of(batches):
                yield name, batch
            else:
                del entries[name]


def _in_order(pairs: Iterable[Any], size: int) -> Inputs:
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise RunError(f"results() wants pairs of an entry and rows, not {safe_repr(pair)}")
        batches = Batches("results()", pair[1], size)
        while batch := _next_of(batches):
            yield pair[0], batch


def _next_of(batches: Batches) -> list[Any] | None:
    try:
        return next(batches, None)
    except BaseException as error:
        with suppress(Exception):  # an exception of the caller's may refuse attributes
            error.unsent = batches.taken  # type: ignore[attr-defined]
        raise


def _pull(run: Run[Any], untaken: Untaken[Any], inputs: Inputs) -> Generator[bool, None, None]:
    """Send a batch, and have handed out what has come, until all is sent; then finish the run."""
    sent = 0
    try:
        for entry, batch in inputs:
            yield from _patiently(partial(run.send, entry, batch), untaken)
            sent += len(batch)
            yield True
        yield from _patiently(run.finish, untaken)
    except BaseException as error:
        with suppress(Exception):
            error.sent = sent + getattr(error, "sent", 0)  # type: ignore[attr-defined]
        if isinstance(error, Exception):  # what came of the rows before it comes first
            with suppress(RunError):
                run._wait(run._flow.admitted, None)
            while len(untaken):
                yield True
        run.cancel(_GRACE)
        raise


def _patiently(call: Callable[..., Any], untaken: Untaken[Any]) -> Iterator[bool]:
    """Call until it comes to an end in time, and have handed out meanwhile what has come."""
    while True:
        try:
            call(timeout=_MOMENT)
            return
        except RunTimeout:
            if len(untaken):
                yield True
