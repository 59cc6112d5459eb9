"""A net as an operator of a stream graph: one thread runs it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterable
from typing import Any
from weakref import finalize

from callboard.core.handles import public_names
from callboard.core.text import safe_repr
from callboard.nets.errors import NetEnded, NetError
from callboard.nets.kernel.node_builder import is_async_function
from callboard.nets.running.failing import effect_of, make_variant, run_error
from callboard.nets.running.net_state import NetState
from callboard.nets.terms.labels import Record
from callboard.nets.terms.network import Net, Ordered
from callboard.nets.types.typed import Typed, infer


class NetOperator:
    """A net as an operator of a stream graph: `entry("rows").stateful(NetOperator, net)`.

    Rows are records, and so are the outputs, in the order of the rows. The operator's thread calls
    all boxes, and handles one row after the other. Coroutine functions run on the operator's own
    event loop; those that one row reaches run concurrently. The options `threads`, `dedicated` and
    `concurrency`, placement hints, and timeouts of other functions have no effect here.

    If a box with `errors="skip"` fails at a record, that counts as a skipped row of the graph. If
    records remain in unfinished synchrocells at the end, `on_final` raises NetError. With
    `unpaired="drop"` they are dropped.
    """

    __dir__ = public_names

    def __init__(self, net: Net, *, unpaired: str = "fail") -> None:
        self._state = NetState(self._check_arguments(net, unpaired=unpaired))
        self._executor = self._state.executor
        self._executor.failed = self._fail
        self._unpaired = unpaired
        self._begun = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._failure: BaseException | None = None
        self._skipped: list[NetError] = []

    @staticmethod
    def _check_arguments(net: Net, *, unpaired: str = "fail") -> Typed:
        """Infer the net's type. `stateful` calls this, too, so that errors come with the graph."""
        if not isinstance(net, Net):
            raise TypeError(f"NetOperator() expects a net, got {safe_repr(net)}")
        if unpaired not in ("fail", "drop"):
            raise ValueError(f"unpaired expects 'fail' or 'drop', got {unpaired!r}")
        return infer(Ordered(net))

    def receive(self, row: Any) -> list[Record]:
        """Send a record through the net, and return the outputs that it causes.

        Raises the error that ends the net, and NetEnded for the rows after it, since parts of the
        failed record may be anywhere in the net. A row that is not a record does not end the net.
        """
        if self._failure is not None:
            raise NetEnded(f"the net has failed at an earlier row: {self._failure}")
        self._skipped = []
        try:
            return self._answer(row)
        except BaseException as error:
            if self._executor.taken or not self._begun:  # the row was a record
                self._failure = error
            raise

    def _answer(self, row: Any) -> list[Record]:
        executor = self._executor
        if not self._begun:
            self._state.begin()
            self._work()  # the executor takes a row only when nothing else is on its way
            self._begun = True
        executor.take(self._state.entry, [row], 0, 1 << 40, 1 << 60, None)
        self._work()
        outputs, executor.outputs = executor.outputs, []
        return outputs

    def _work(self) -> None:
        """Move records and make calls, until nothing more comes."""
        executor = self._executor
        running: dict[asyncio.Task[Any], Any] = {}
        try:
            while True:
                self._move()
                calls, executor.calls = executor.calls, []
                for call in calls:
                    self._begin(call, running)
                if not calls and not running:
                    break
                if running and executor.is_empty and not executor.calls:
                    for task in self._first_done(running):
                        self._end(running.pop(task), task)
        finally:
            if running:  # an error ended this record
                self._cancel(running)

    def take_skipped(self) -> list[NetError]:
        """Return the errors of the records that the latest row skipped, each with its record."""
        taken, self._skipped = self._skipped, []
        return taken

    def on_final(self) -> list[Record]:
        """End: there are no more rows."""
        left = self._executor.end()
        if self._loop is not None:
            self._loop.close()
        if left and self._unpaired == "fail":
            raise NetError(f"{len(left)} records are left in synchrocells: {left[:3]!r}")
        return []

    def _begin(self, call: Any, running: dict[asyncio.Task[Any], Any]) -> None:
        """Make a call, or begin one that is to be awaited."""
        if is_async_function(call.function):
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                finalize(self, self._loop.close).atexit = False  # a cancelled run has no end
            running[self._loop.create_task(_awaited(call))] = call
            return
        options = call.box.options
        while True:
            try:
                result = call.function(*call.arguments)
                values = list(result) if inspect.isgenerator(result) else [result]
            except Exception as error:
                if call.tries == options.retries:
                    self._give(call, [], error)
                    return
                call.tries += 1
            else:
                self._give(call, values)
                return

    def _cancel(self, tasks: Iterable[asyncio.Task[Any]]) -> None:
        """Cancel tasks, and let them end if they do so at once."""
        assert self._loop is not None
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.wait(tasks, timeout=0))

    def _first_done(self, running: dict[asyncio.Task[Any], Any]) -> set[asyncio.Task[Any]]:
        assert self._loop is not None
        waiting = asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        return self._loop.run_until_complete(waiting)[0]

    def _end(self, call: Any, task: asyncio.Task[Any]) -> None:
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        self._give(call, [] if error is not None else task.result(), error)

    def _give(self, call: Any, values: list[Any], error: BaseException | None = None) -> None:
        """Pass on a call's outputs, and let the next one begin."""
        node = call.box
        try:
            node.give(self._executor, call, [value for value in values if value is not None])
        except Exception as raised:  # one is invalid
            error = raised
        self._move()
        if error is not None and self._fail(node, call.record, error):
            node.pass_record(self._executor, call)
            self._move()
        node.end(self._executor, call)
        self._move()

    def _move(self) -> None:
        while self._executor.run(1 << 60):
            pass

    def _fail(self, node: Any, record: Any, error: BaseException) -> bool:
        if not isinstance(error, Exception):  # SystemExit and such are for the graph
            raise error
        made, effect = run_error(node, record, error), effect_of(node, error)
        if effect == "fail":
            raise made
        if effect == "variant":
            make_variant(node, record, made, self._state.shapes)
        elif effect == "skip":
            self._skipped.append(made)
        return effect == "variant"


async def _awaited(call: Any) -> list[Any]:
    """Return the outputs of a call, which is retried as the box's options say."""
    options = call.box.options
    while True:
        try:
            async with asyncio.timeout(options.timeout):
                result = call.function(*call.arguments)
                if inspect.isasyncgen(result):
                    return [value async for value in result]
                return [await result]
        except Exception:
            if call.tries == options.retries:
                raise
            await asyncio.sleep(options.pause(call.tries))
            call.tries += 1
