"""Sinks: where a stream ends."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from inspect import isawaitable
from os import PathLike
from typing import Any, Protocol, TypeGuard, TypeVar, cast

from callboard._inside.sending.ref import ActorRef
from callboard.actor import Actor
from callboard.core.text import safe_repr
from callboard.recipient import Recipient, is_recipient, path_of
from callboard.streams.chaining.chainable import Chainable
from callboard.streams.chaining.graph import Graph
from callboard.streams.checks import check_choice, check_flag, check_function, check_name
from callboard.streams.errors import GraphError
from callboard.streams.planning.operator import Errors, Operator, label_of
from callboard.streams.programs.program import Program, check_answer
from callboard.streams.programs.rows.files import Mode, to_file
from callboard.streams.programs.rows.sinks import Call, Collect, Tell, TellAll

T = TypeVar("T", covariant=True)
C = TypeVar("C", contravariant=True)


class SupportsPut(Protocol[C]):
    """The end of a channel that rows go into, such as `callboard.channels.Sender`."""

    def put(self, value: C, /) -> object:
        """Put a row in, and wait for room before."""

    def close(self) -> object:
        """Say that no more rows come."""


def _is_channel(sink: object) -> TypeGuard[SupportsPut[Any]]:
    return all(callable(getattr(sink, name, None)) for name in ("put", "close"))


def _check_channel(sink: SupportsPut[Any]) -> None:
    if isinstance(sink, type):
        raise GraphError(f"a sink with put() and close() is an object, not its class: {sink!r}")
    for name in ("put", "flush", "close"):
        method = getattr(sink, name, None)
        if method is not None:
            check_function(f"a sink's {name}()", method)


def _call(hook: Callable[[], object]) -> None:
    """Call a sink's method, which is done when it returns. Raises TypeError if it is not."""
    answer = hook()
    check_answer(answer)
    if isawaitable(answer):
        raise TypeError(f"{hook!r} returned {safe_repr(answer)}, which nobody would await")


def _close(sink: SupportsPut[Any]) -> None:
    """End the sink's use of a channel: another thread than the one that put rows in may be here."""
    hand_on = getattr(sink, "hand_on", None)
    if hand_on is not None:
        hand_on()
    _call(sink.close)


class Ends(Chainable[T]):
    """The methods that make a graph of a stream. Watermarks end here, too."""

    __slots__ = ()

    def collect(self, *, name: str | None = None) -> Graph[list[T]]:
        """End in a list, which is the run's result, or a part of it by this name."""
        return self._end("collect", Collect, name)

    def to(
        self,
        sink: Callable[[T], object] | Recipient[T] | SupportsPut[T] | str | PathLike[str],
        *,
        mode: Mode = "w",
        flush: bool = False,
        name: str | None = None,
        errors: Errors = "fail",
    ) -> Graph[None]:
        """End in a function, which is called with each row, in a Recipient, a channel or a file.

        An actor is told each row. If its mailbox refuses a row, by MailboxFull, the sink has raised
        at that row. A row for a stopped actor is a dead letter.

        Another recipient, such as a RemoteRef, is told a batch at a time; with `errors="skip"` row
        by row, so that it is known which rows it refused. It may have to wait for another process,
        so a thread of its own runs it in the models `dynamic` and `assigned`, unless
        `stream.run_on()` has named a model. A run has ended when all rows are told, and not when
        the other process has handled them.

        A channel's sender puts each row in, and is closed when the run is over. So does any object
        with `put(row)` and `close()`. A full channel holds the stream up, and `send()` with it. A
        thread of its own runs the sink, as above, because it waits. If the object has `flush()`,
        that is called after the last row. An exception there fails the run, or is skipped and
        counted, by `errors`. A run that fails, is cancelled, or is not finished when its system
        ends, only closes the object. An exception of `close()` is only logged, but for Ctrl-C.
        None of the three is `async`, or returns what is to be awaited.

        In a file each row is a line: strings as they are, and all else as JSON, objects of
        dataclasses among it. A run opens the file when it is made, and raises RunError if another
        run is writing it. By `mode` "w" the old content is gone when the run has its first rows, or
        ends without any; by "a" the rows are written behind it; by "x" the run raises
        FileExistsError if the file is there. A run that is refused, or cancelled before it has
        rows, leaves the file as it was, or makes none. With `flush` readers see the lines after
        each batch, and without it when some kilobytes have come, and at the end.
        """
        check_choice("mode", mode, ("w", "a", "x"))
        check_flag("flush", flush)
        if (mode != "w" or flush) and not isinstance(sink, str | PathLike):
            raise GraphError(f"mode= and flush= are for a file, not for {safe_repr(sink)}")
        if isinstance(sink, ActorRef):
            program = partial(Tell, ref=sink)
            return self._end("to", program, name, errors, label="tell", detail=sink.path)
        if is_recipient(sink):
            told: Callable[..., Program] = partial(TellAll, recipient=sink)
            if errors == "skip":
                told = partial(Call, function=sink.tell)
            detail = path_of(sink)
            return self._end("to", told, name, errors, label="tell", detail=detail, waits=True)
        if _is_channel(sink):
            _check_channel(sink)
            flush_sink = getattr(sink, "flush", None)
            finish = None if flush_sink is None else partial(_call, flush_sink)
            put = partial(Call, function=sink.put, finish=finish, end=partial(_close, sink))
            return self._end("to", put, name, errors, label="put", detail=path_of(sink), waits=True)
        if isinstance(sink, str | PathLike):
            check_name("a file's name", os.fspath(sink))
            file = partial(to_file, path=sink, mode=mode, flush=flush)
            return self._end("to", file, name, errors, label="write", detail=str(sink))
        if isinstance(sink, type) and issubclass(sink, Actor):
            raise GraphError(f"an actor that ends a stream is given by its ref, not as {sink!r}")
        if not callable(sink) and hasattr(sink, "put"):
            raise GraphError(f"a sink with put() has close(), too, and {safe_repr(sink)} has none")
        if not callable(sink):
            hint = ": for a file, give its path" if hasattr(sink, "write") else ""
            raise GraphError(
                "a sink is a path, a function, a ref or an object with put() and close(), not "
                f"{safe_repr(sink)}{hint}"
            )
        check_function("a sink", sink)
        call = partial(Call, function=cast("Callable[[T], object]", sink))
        return self._end("to", call, name, errors, label=label_of(sink, "to"))

    def _end(
        self,
        kind: str,
        program: Callable[..., Program],
        name: str | None,
        errors: Errors = "fail",
        *,
        label: str = "",
        detail: str = "",
        waits: bool = False,
    ) -> Graph[Any]:
        operator = Operator(
            kind=kind,
            program=program,
            label=label,
            detail=detail,
            ports=(),
            stateful=True,
            waits=waits,
        )
        return Graph._of(self._then(operator, name, errors)._outlet.operator)
