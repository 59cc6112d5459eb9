"""Iterators over the outputs of a run, as they are made."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Generic, Self, TypeVar

from callboard.core.handles import public_names
from callboard.core.text import safe_repr
from callboard.core.threads.blocking import in_thread, running_task
from callboard.rows.batches import Batches, is_table
from callboard.streams.checks import check_entry
from callboard.streams.errors import RunError, RunTimeout
from callboard.streams.running.execution import Execution
from callboard.streams.running.output_buffer import OutputBuffer

T = TypeVar("T")
Inputs = Iterator[tuple[str, list[Any]]]

_MOMENT = 0.1  # seconds between a waiting sender's looks for something to hand out
_INSTEAD = "send them by asend(), and give results() none"
_GRACE = 1.0  # seconds that operators have to end when their outputs are not wanted


class Results(Generic[T]):
    """An iterator of a collector's outputs, in order, as they are made. Made by `Run.results`.

    It waits for outputs, and ends once the run is finished and all are taken. After a failure it
    returns the outputs before it, and then raises the run's StreamError, or RunEnded if the run was
    cancelled or its system stopped. It keeps no reference to outputs that it has returned. `async
    for` does the same without blocking the event loop. Several threads may take outputs; each
    output goes to one.

    The iterator releases the collector when it is closed or dropped, has raised, or when the thread
    or task that took from it has ended. It then raises RunError, and `Run.results()` returns a new
    one, which continues with the outputs not taken yet.
    """

    __dir__ = public_names

    def __init__(self, source: Execution, buffer: OutputBuffer[T]) -> None:
        self._source = source
        self._buffer = buffer
        self._chunk = buffer.chunk

    def _take_over(self, limit: int | None) -> Self:
        """Go on where the last iterator of the same outputs was. Raises RunError if it is at it."""
        if not self._buffer.hand_over(self, limit):
            gc.collect()  # a traceback may keep an unreachable iterator
            if not self._buffer.hand_over(self, limit):
                raise RunError(
                    f"the results() of {self._buffer.name!r} already have an iterator: close or "
                    "drop it to get another one"
                )
        self._chunk = self._buffer.chunk
        return self

    @property
    def pending(self) -> int:
        """The number of outputs that wait to be taken."""
        return len(self._buffer)

    def take(self) -> list[T]:
        """Return all available outputs without waiting, even if the run has failed or ended."""
        self._source.life.check_caller("take()", by_operators=True)
        self._check_is_taker()
        return self._buffer.take_all()

    def close(self) -> None:
        """Leave the outputs that are not taken to `finish()`, or to other `results()`.

        `send()` no longer waits until outputs are taken.
        """
        if self._is_taker():
            self._buffer.unbind()
            self._buffer.is_free = True

    def _is_taker(self) -> bool:
        return self._chunk is self._buffer.chunk

    def _check_is_taker(self) -> None:
        if not self._is_taker():
            raise RunError(
                f"this iterator has released {self._buffer.name!r}, and another call of results() "
                "has it"
            )

    def _let_go(self) -> None:
        if self._is_taker():
            self._buffer.is_free = True

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        try:
            return self._chunk.pop()
        except IndexError:
            return self._next()

    def _next(self) -> T:
        buffer = self._buffer
        self._source.life.check_caller("results()", by_operators=True)
        self._check_is_taker()
        buffer.use(threading.current_thread())
        try:
            while True:
                try:
                    return buffer.take_one()
                except IndexError:
                    if not self._more():
                        raise StopIteration from None
                    self._check_is_taker()
        except BaseException:
            self._let_go()
            raise

    def _more(self) -> bool:
        """Wait until something may have come. False: nothing will, and all is taken."""
        source = self._source
        source.life.check_caller("results()", by_any_caller=True)
        outlook = source.outlook()  # what comes after this look ends the wait
        if self.pending:
            return True
        if outlook.is_over:
            source.life.check_not_stopped()
            return False
        others = "no row is on its way" if outlook.is_idle else ""
        source.life.check_wait("results()", "take them by `async for`", for_others=others)
        source.waiting.for_a_moment(outlook.done + 1)
        return True

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        try:
            return self._chunk.pop()
        except IndexError:
            return await self._anext()

    async def _anext(self) -> T:
        buffer = self._buffer
        self._refuse_async()
        self._source.life.check_caller("results()", by_operators=True)
        self._check_is_taker()
        buffer.use(running_task())
        try:
            while True:
                try:
                    return buffer.take_one()
                except IndexError:
                    # In turns of a tenth of a second: so long its thread outlives a cancelled task.
                    if not await in_thread(self._more):
                        raise StopAsyncIteration from None
                    self._check_is_taker()
        except BaseException:
            self._let_go()
            raise

    def _refuse_async(self) -> None:
        """Raise RunError where `async for` would block."""

    def __repr__(self) -> str:
        return f"<Results of {self._buffer.name!r}, {self.pending} pending>"


class PulledResults(Results[T]):
    """The same, of rows that it sends itself whenever nothing waits to be handed out.

    At the end of the rows it finishes the run. Closing it cancels the run, and so does letting it
    go. Batches in work have a second to come to an end. One thread at a time takes.
    """

    def __init__(self, source: Execution, buffer: OutputBuffer[T], inputs: Inputs) -> None:
        super().__init__(source, buffer)
        self._pulling = _pull(source, buffer, inputs)
        self._turn = threading.Lock()  # held by the sender

    def _more(self) -> bool:
        self._source.life.check_wait("results() with rows", _INSTEAD)
        if not self._turn.acquire(blocking=False):
            raise RunError(
                "results() with rows allows one reader at a time, and another one, or the rows "
                f"themselves, is reading from {self._source!r}"
            )
        try:
            return next(self._pulling, False) or self.pending > 0
        finally:
            self._turn.release()

    def close(self) -> None:
        """Cancel the run; a thread that is taking gets RunEnded."""
        if self._turn.acquire(blocking=False):
            try:
                self._pulling.close()
            finally:
                self._turn.release()
        self._source.cancel(_GRACE)
        super().close()

    def _let_go(self) -> None:
        """Do nothing: the run belongs to this iterator, so no other one may take over."""

    def _refuse_async(self) -> None:
        raise RunError(
            "`async for` of results() with rows would block the event loop while they are sent: "
            + _INSTEAD
        )


def inputs_of(rows: Any, entries: tuple[str, ...], size: int) -> Inputs:
    """Check the rows that `results()` is to send, as far as they are there; say in which order."""
    if isinstance(rows, Mapping):
        for name in rows:
            check_entry(name, entries)
        return _in_turns({name: Batches("results()", of, size) for name, of in rows.items()})
    if len(entries) == 1:
        return _in_turns({entries[0]: Batches("results()", rows, size)})
    if isinstance(rows, str | bytes) or not isinstance(rows, Iterable) or is_table(rows):
        raise RunError(f"results() expects rows by their entries, got {safe_repr(rows)}")
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
            raise RunError(f"results() expects pairs of an entry and rows, got {safe_repr(pair)}")
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


def _pull(
    source: Execution, buffer: OutputBuffer[Any], inputs: Inputs
) -> Generator[bool, None, None]:
    """Send a batch, and have the outputs so far handed out, until all is sent; then finish."""
    sent = 0
    try:
        for entry, batch in inputs:
            sending = _Sending(source, entry, batch)
            yield from _patiently(sending.go_on, buffer)
            sent += len(batch)
            yield from _patiently(source.await_room, buffer)  # before a source that may wait, too
            yield True
        yield from _patiently(source.finish, buffer)
    except BaseException as error:
        with suppress(Exception):
            error.sent = sent + getattr(error, "sent", 0)  # type: ignore[attr-defined]
        if isinstance(error, Exception):  # the outputs of the rows before it come first
            with suppress(RunError):
                source.waiting.for_all()
            while len(buffer):
                yield True
        source.cancel(_GRACE)
        raise


class _Sending:
    """Rows that are sent once, by however many calls that time out."""

    def __init__(self, source: Execution, entry: str, rows: list[Any]) -> None:
        self._source = source
        self._entry = entry
        self._rows = rows
        self._sent = 0

    def go_on(self, timeout: float) -> None:
        try:
            self._source.send(self._entry, self._rows, timeout=timeout)
        except BaseException as error:
            sent = getattr(error, "sent", 0)
            self._rows = self._rows[sent:]
            self._sent += sent
            with suppress(Exception):  # an exception of the caller's may refuse attributes
                error.sent, error.unsent = self._sent, self._rows  # type: ignore[attr-defined]
            raise


def _patiently(call: Callable[..., Any], buffer: OutputBuffer[Any]) -> Iterator[bool]:
    """Call until it ends in time; yield between the calls to hand out outputs."""
    while True:
        try:
            call(timeout=_MOMENT)
            return
        except RunTimeout:
            if len(buffer):
                yield True
