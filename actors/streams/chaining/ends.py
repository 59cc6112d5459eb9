"""Sinks, which end streams."""

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
        """Put a row in, after waiting for room."""

    def close(self) -> object:
        """Say that no more rows come."""


def _is_channel(sink: object) -> TypeGuard[SupportsPut[Any]]:
    return all(callable(getattr(sink, name, None)) for name in ("put", "close"))


def _check_channel(sink: SupportsPut[Any]) -> None:
    if isinstance(sink, type):
        raise GraphError(
            f"a sink with put() and close() must be an object, got its class: {sink!r}"
        )
    for name in ("put", "flush", "close"):
        method = getattr(sink, name, None)
        if method is not None:
            check_function(f"a sink's {name}()", method)


def _call(hook: Callable[[], object]) -> None:
    """Call a sink's method, which is done when it returns. Raises TypeError if it is not."""
    answer = hook()
    check_answer(answer)
    if isawaitable(answer):
        raise TypeError(f"{hook!r} returned {safe_repr(answer)}, which is never awaited")


def _close(sink: SupportsPut[Any]) -> None:
    """Close a sink. A channel's end may belong to another thread, so it is released first."""
    if type(sink).__module__.startswith("callboard.channels."):
        cast("Any", sink).release()
    _call(sink.close)


class Ends(Chainable[T]):
    """The methods that make a graph from a stream. Watermarks end here."""

    __slots__ = ()

    def collect(self, *, name: str | None = None) -> Graph[list[T]]:
        """Collect the rows in a list, which is the run's result, or a part of it by this name."""
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
        """Send the rows to a function, which is called with each, a Recipient, a channel or a file.

        - An actor is told each row. If its mailbox refuses a row with MailboxFull, that is an error
          of the row. A row for a stopped actor is a dead letter.
        - Another recipient, such as a RemoteRef, is told a batch at a time; with `errors="skip"`
          row by row, so that the refused rows are known. It may have to wait for another process,
          so in the models `dynamic` and `assigned` a separate thread runs it, unless
          `stream.run_on()` names a model. A run has ended when all rows are told, not when the
          other process has handled them.
        - A channel's sender, or any other object with `put(row)` and `close()`, gets each row, and
          is closed when the run is over. A full channel blocks the stream, and so `send()`; a
          separate thread runs the sink, as above. If the object has `flush()`, it is called after
          the last row; an exception there fails the run, or is skipped and counted, according to
          `errors`. If the run fails, is cancelled, or is not finished when its system ends, only
          `close()` is called. An exception of `close()` is only logged, except for Ctrl-C. The
          three methods must not be `async` or return awaitables.
        - In a file each row is a line: strings as they are, anything else as JSON, including
          dataclass objects. A run opens the file when it is made, and raises RunError if another
          run is writing it.

        Args:
            sink: One of the above. A string or a path names a file.
            mode: Of a file. "w": the old content is removed when the run has its first rows, or
                ends without any. "a": rows are appended. "x": the run raises FileExistsError if the
                file exists. A run that is refused, or cancelled before it has rows, leaves the file
                as it was, or makes none.
            flush: Make lines visible to the file's readers after each batch; otherwise after a few
                kilobytes, and at the end.
        """
        check_choice("mode", mode, ("w", "a", "x"))
        check_flag("flush", flush)
        if (mode != "w" or flush) and not isinstance(sink, str | PathLike):
            raise GraphError(f"mode= and flush= need a file as the sink, got {safe_repr(sink)}")
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
            raise GraphError(f"an actor that ends a stream must be given by its ref, got {sink!r}")
        if not callable(sink) and hasattr(sink, "put"):
            raise GraphError(
                f"a sink with put() must also have close(), and {safe_repr(sink)} has none"
            )
        if not callable(sink):
            hint = ": for a file, give its path" if hasattr(sink, "write") else ""
            raise GraphError(
                "a sink must be a path, a function, a ref or an object with put() and close(), got "
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
