"""Refs to the entry points of a server."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn

from callboard import Future
from callboard._inside.answers.wait_cause import WaitCause, WaitTarget
from callboard.core import checks
from callboard.core.errors import AskTimeout, CallboardError
from callboard.core.handles import CopiedAsItself
from callboard.core.text import safe_repr
from callboard.recipient import together
from callboard.remote.client.session import WAITS_FOR_ITSELF, SessionOwner
from callboard.remote.protocol.conversation import Submission
from callboard.remote.protocol.kinds import LONGEST_TRACE, MessageKind
from callboard.remote.wire.arrow_ipc import write_batch
from callboard.rows.batches import iterator_over

if TYPE_CHECKING:
    import pyarrow as pa


class RemoteAnswer(Future[Any]):
    """A future whose `result()` reads the connection itself, unless another thread does.

    Until it is done it keeps the connection alive, which would be closed with its last reference.
    """

    __slots__ = ("_connection", "_session")

    def __init__(self, connection: SessionOwner) -> None:
        super().__init__()
        self._connection: SessionOwner | None = connection
        self._session = connection._own_session

    @property
    def _wait_cause(self) -> WaitCause:
        return WaitCause(WaitTarget.ANSWER)

    def _wait(self, timeout: float | None = None) -> None:
        """Wait until it is done. Raises AskTimeout after `timeout` seconds; CallboardError in a
        callback of an answer, on the thread that reads them.
        """
        if not self.done() and self._session.is_read_here:
            raise CallboardError(f"result() in a callback of an answer {WAITS_FOR_ITSELF}")
        if timeout is None:
            self._session.drive(self, None)
            super()._wait()
            return
        deadline = time.monotonic() + timeout
        self._session.drive(self, deadline)
        try:
            super()._wait(max(deadline - time.monotonic(), 0.0))
        except AskTimeout:
            raise AskTimeout(f"no answer after {timeout:g} s") from None

    def set_result(self, value: Any) -> bool:
        """Complete with an answer. Returns False if it was complete already."""
        is_first = super().set_result(value)
        self._session.wake(self)
        self._connection = None
        return is_first

    def cancel(self) -> bool:
        """Cancel the ask: it is withdrawn if it was not sent; otherwise the server goes on.

        Returns False if it was complete already.
        """
        is_first = super().cancel()
        if is_first:
            self._session.forget(self)
        self._session.wake(self)
        self._connection = None
        return is_first

    def set_exception(self, error: BaseException) -> bool:
        """Complete with an exception. Returns False if it was complete already."""
        is_first = super().set_exception(error)
        self._session.wake(self)
        self._connection = None
        return is_first


_ROWS = 1024  # of tell_many(), in a frame
_UNKNOWN = (1, 4096)  # rows and bytes, before there is a connection: any server takes as many
_ASK, _TELL = MessageKind.ASK, MessageKind.TELL


class RemoteRef(CopiedAsItself):
    """A handle to an entry point of a server. Thread-safe."""

    def __init__(self, connection: SessionOwner, name: str) -> None:
        self.connection = connection
        self.name = name

    def tell(self, message: Any) -> None:
        """Send `message`. Waits for credit, at most for the connection's timeout.

        Raises ConnectionLost, also for earlier messages that were lost with a connection;
        RemoteCallError for earlier messages that the server refused; CodecError; and CallboardError
        where it would block an event loop's thread or a worker.
        """
        self.connection._deliver(self._submission(_TELL, message), "tell")

    def atell(self, message: Any) -> Future[None]:
        """Send `message` as soon as the server accepts it; return a future that is done then.

        Cancelling the `await` withdraws the message, unless it was sent just before.
        """
        return self._soon(self._submission(_TELL, message))

    def tell_many(self, messages: Iterable[Any]) -> None:
        """Send all of `messages` in order, many in each frame. Waits and raises like `tell`.

        Messages that were sent before an error stay sent.
        """
        for submission in self._submissions(messages):
            self.connection._deliver(submission, "tell_many")

    def atell_many(self, messages: Iterable[Any]) -> Future[None]:
        """Send all of `messages` as soon as the server accepts them; return a future.

        It is done when all are sent, and fails with the first message that is refused or lost.
        """
        return together([self._soon(submission) for submission in self._submissions(messages)])

    def send_batch(self, batch: pa.RecordBatch) -> None:
        """Send an Arrow record batch as one message, even if it has no rows.

        Waits and raises like `tell`.
        """
        self.connection._deliver(self._batch(batch), "send_batch")

    def asend_batch(self, batch: pa.RecordBatch) -> Future[None]:
        """Send an Arrow record batch as soon as the server accepts it; return a future of that."""
        return self._soon(self._batch(batch))

    def ask(self, message: Any, timeout: float | None = None) -> Future[Any]:
        """Send `message` and return a Future of the answer immediately, in any thread.

        The future fails with the handler's exception as a RemoteCallError; with ActorStopped,
        AskDeadlock or MailboxFull as on the server; with ConnectionLost if the connection broke
        after the ask was sent; and with AskTimeout after `timeout` seconds. The call raises like
        `tell`.

        A thread that waits in `result()` reads the connection, and completes all answers that
        arrive. If a signal handler raises then, the connection breaks.
        """
        seconds = checks.timeout("timeout", timeout)
        data = self.connection._codec.encode(message)
        session = self.connection._own_session
        answer = RemoteAnswer(self.connection)
        session.submit(Submission(_ASK, self.name, (data,), 1, answer, self._trace()))
        if seconds is not None:
            session.fail_after(answer, seconds, self.name)
        return answer

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise missing_attribute(self, name)

    def _soon(self, submission: Submission) -> Future[None]:
        session = self.connection._own_session
        session.submit(submission)
        sent = submission.sent
        assert sent is not None
        return sent if sent.done() else Leaving(sent, partial(session.withdraw, submission))

    def _submission(self, kind: MessageKind, message: Any) -> Submission:
        data = self.connection._codec.encode(message)
        return Submission(kind, self.name, (data,), trace=self._trace())

    def _batch(self, batch: pa.RecordBatch) -> Submission:
        return Submission(MessageKind.BATCH, self.name, write_batch(batch), trace=self._trace())

    def _trace(self) -> str | None:
        """Return the `traceparent` of the caller's span, if it is to go along."""
        traces = self.connection._traces
        found = None if traces is None else traces()
        if found is not None and not _may_travel(found):
            raise TypeError(
                f"traces() must return None, or a traceparent of at most {LONGEST_TRACE} ASCII "
                f"characters, got {safe_repr(found)}"
            )
        return found

    def _submissions(self, messages: Iterable[Any]) -> Iterator[Submission]:
        source = iterator_over("tell_many()", messages, "messages")
        while True:
            server = self.connection._own_session.last_server
            most, longest = _UNKNOWN if server is None else (server.messages, server.longest)
            rows = list(islice(source, min(_ROWS, most)))
            if not rows:
                return
            for data, size in self.connection._codec.encode_lots(rows, longest):
                trace = self._trace()
                yield Submission(MessageKind.TELL_MANY, self.name, (data,), size, trace=trace)

    def __repr__(self) -> str:
        return f"<RemoteRef {self.name!r} at {self.connection.address}>"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, RemoteRef)
            and other.connection is self.connection
            and other.name == self.name
        )

    def __hash__(self) -> int:
        return hash((id(self.connection), self.name))


class Leaving(Future[None]):
    """A future of messages that wait to be sent. A cancelled `await` withdraws them."""

    __slots__ = ("_withdraw",)

    def __init__(self, sent: Future[None], withdraw: Callable[[], bool]) -> None:
        """`withdraw()` takes them back, unless they are sent: then `sent` is done."""
        super().__init__()
        self._withdraw = withdraw
        sent.add_done_callback(self._note_sent)

    @property
    def _wait_cause(self) -> WaitCause:
        return WaitCause(WaitTarget.ANSWER)

    def __await__(self) -> Generator[Any, None, None]:
        try:
            yield from super().__await__()
        except BaseException:
            if self._withdraw():
                text = "a message was not sent: the wait for credit was cancelled"
                self.set_exception(CallboardError(text))
            raise

    def cancel(self) -> bool:
        """Withdraw the messages that are not sent. Returns False if all are sent."""
        self._withdraw()
        return super().cancel()

    def _note_sent(self, sent: Future[None]) -> None:
        error = sent.exception()
        if error is None:
            self.set_result(None)
        else:
            self.set_exception(error)


def _may_travel(trace: object) -> bool:
    return isinstance(trace, str) and trace.isascii() and len(trace) <= LONGEST_TRACE


_LIFE = {
    "ready": "an answer says that the actor runs",
    "ended": "it fails by ActorStopped after the end",
}


def missing_attribute(ref: object, name: str) -> AttributeError:
    """Return the error for an attribute that a ref on something elsewhere does not have."""
    if name not in _LIFE:
        return AttributeError(f"{type(ref).__name__!r} object has no attribute {name!r}")
    return AttributeError(
        f"{ref!r} has no `{name}`: an actor's start and end are not told between processes. "
        f"Send an ask: {_LIFE[name]}; or use `{name}` of the actor's own ref in its process"
    )
