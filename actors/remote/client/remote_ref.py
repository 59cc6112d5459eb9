"""Refs on the entry points of a server elsewhere."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn

from callboard import Future
from callboard._inside.answers.wait_cause import WaitCause, WaitTarget
from callboard.core import checks
from callboard.core.errors import AskTimeout, CallboardError
from callboard.core.handles import CopiedAsItself
from callboard.core.text import safe_repr
from callboard.recipient import together
from callboard.remote.client.session import WAITS_FOR_ITSELF, RemoteSession, SessionOwner
from callboard.remote.protocol.conversation import Submission
from callboard.remote.protocol.kinds import LONGEST_TRACE, MessageKind
from callboard.remote.wire.arrow_ipc import write_batch
from callboard.rows.batches import iterator_over

if TYPE_CHECKING:
    import pyarrow as pa


class RemoteAnswer(Future[Any]):
    """A future whose `result()` reads the connection itself, unless another thread does.

    Until it is done it keeps the connection, which else is closed when nobody has it any more.
    """

    __slots__ = ("_connection", "_session")

    def __init__(self, connection: SessionOwner) -> None:
        super().__init__()
        self._connection: SessionOwner | None = connection
        self._session = connection.session

    @property
    def _wait_cause(self) -> WaitCause:
        return WaitCause(WaitTarget.ANSWER)

    def wait(self, timeout: float | None = None) -> None:
        """Wait until it is done. Raises AskTimeout after `timeout` seconds; CallboardError in a
        callback of an answer, on the thread that reads them.
        """
        if not self.done() and self._session.is_read_here:
            raise CallboardError(f"result() in a callback of an answer {WAITS_FOR_ITSELF}")
        if timeout is None:
            self._session.drive(self, None)
            super().wait()
            return
        deadline = time.monotonic() + timeout
        self._session.drive(self, deadline)
        try:
            super().wait(max(deadline - time.monotonic(), 0.0))
        except AskTimeout:
            raise AskTimeout(f"no answer after {timeout:g} s") from None

    def set_result(self, value: Any) -> bool:
        """Complete with an answer. False if it was complete already."""
        is_first = super().set_result(value)
        self._session.wake(self)
        self._connection = None
        return is_first

    def cancel(self) -> bool:
        """Want it no more: it is taken back if it has not left, else the server goes on.

        False if it was complete already.
        """
        is_first = super().cancel()
        if is_first:
            self._session.forget(self)
        self._session.wake(self)
        self._connection = None
        return is_first

    def set_exception(self, error: BaseException) -> bool:
        """Complete with an exception. False if it was complete already."""
        is_first = super().set_exception(error)
        self._session.wake(self)
        self._connection = None
        return is_first


_ROWS = 1024  # of tell_many(), in a frame
_UNKNOWN = (1, 4096)  # rows and bytes, before there is a connection: any server takes as many
_ASK, _TELL = MessageKind.ASK, MessageKind.TELL


class RemoteRef(CopiedAsItself):
    """A handle on an entry point of a server. Safe in every thread."""

    def __init__(self, connection: SessionOwner, name: str) -> None:
        self.connection = connection
        self.name = name

    def tell(self, message: Any) -> None:
        """Send `message`. Waits while the server takes no more, for the connection's timeout.

        Raises ConnectionLost, also for earlier messages that were lost with a connection, and
        RemoteCallError for earlier ones that the server refused. Raises CodecError, and
        CallboardError where it would block an event loop's thread or a worker.
        """
        self.connection._deliver(self._submission(_TELL, message), "tell")

    def atell(self, message: Any) -> Future[None]:
        """Send `message` as soon as the server takes it; return a future that is done then.

        A cancelled `await` takes the message back, unless it was sent just before.
        """
        return self._soon(self._submission(_TELL, message))

    def tell_many(self, messages: Iterable[Any]) -> None:
        """Send all of `messages`, in their order, many in a frame. Waits and raises like `tell`.

        Messages that were sent before an error stay sent.
        """
        for submission in self._submissions(messages):
            self.connection._deliver(submission, "tell_many")

    def atell_many(self, messages: Iterable[Any]) -> Future[None]:
        """Send all of `messages` as soon as the server takes them; return a future.

        It is done when all have left, and fails as the first that is refused or lost.
        """
        return together([self._soon(submission) for submission in self._submissions(messages)])

    def send_batch(self, batch: pa.RecordBatch) -> None:
        """Send an Arrow record batch as one message, also if it has no rows.

        Waits and raises like `tell`.
        """
        self.connection._deliver(self._batch(batch), "send_batch")

    def asend_batch(self, batch: pa.RecordBatch) -> Future[None]:
        """Send an Arrow record batch as soon as the server takes it; return a future of that."""
        return self._soon(self._batch(batch))

    def ask(self, message: Any, timeout: float | None = None) -> Future[Any]:
        """Send `message` and return a Future of the answer. Returns at once, in any thread.

        It fails with the handler's exception, as RemoteCallError, and with ActorStopped,
        AskDeadlock or MailboxFull as on the server. It fails with ConnectionLost if the connection
        broke after the ask was sent, and with AskTimeout after `timeout` seconds. Raises like
        `tell`.

        A thread that waits in `result()` reads the connection meanwhile, and completes all answers
        that come. If a signal's handler raises in the middle of that, the connection breaks.
        """
        seconds = checks.timeout("timeout", timeout)
        data = self.connection.codec.encode(message)
        session = self.connection.session
        answer = RemoteAnswer(self.connection)
        session.submit(Submission(_ASK, self.name, (data,), 1, answer, self._trace()))
        if seconds is not None:
            session.fail_after(answer, seconds, self.name)
        return answer

    @property
    def ready(self) -> NoReturn:
        """Raise AttributeError, which says what to do: starts are not told between processes."""
        raise no_life(self, "ready")

    @property
    def ended(self) -> NoReturn:
        """Raise AttributeError, which says what to do: ends are not told between processes."""
        raise no_life(self, "ended")

    def _soon(self, submission: Submission) -> Future[None]:
        session = self.connection.session
        session.submit(submission)
        assert submission.sent is not None
        return submission.sent if submission.sent.done() else _Leaving(session, submission)

    def _submission(self, kind: MessageKind, message: Any) -> Submission:
        data = self.connection.codec.encode(message)
        return Submission(kind, self.name, (data,), trace=self._trace())

    def _batch(self, batch: pa.RecordBatch) -> Submission:
        return Submission(MessageKind.BATCH, self.name, write_batch(batch), trace=self._trace())

    def _trace(self) -> str | None:
        """Return the `traceparent` of the caller's span, if it is to go along."""
        traces = self.connection.traces
        found = None if traces is None else traces()
        if found is not None and not _may_travel(found):
            raise TypeError(
                f"traces() returns a traceparent, of {LONGEST_TRACE} ASCII characters at most, or "
                f"None, not {safe_repr(found)}"
            )
        return found

    def _submissions(self, messages: Iterable[Any]) -> Iterator[Submission]:
        source = iterator_over("tell_many()", messages, "messages")
        while True:
            server = self.connection.session.last_server
            most, longest = _UNKNOWN if server is None else (server.messages, server.longest)
            rows = list(islice(source, min(_ROWS, most)))
            if not rows:
                return
            yield from self._cut(rows, longest)

    def _cut(self, rows: list[Any], longest: int) -> Iterator[Submission]:
        """Put rows into one frame, or into several where one would be too long."""
        data = self.connection.codec.encode_rows(rows)
        if len(data) + 64 > longest and len(rows) > 1:
            middle = len(rows) // 2
            yield from self._cut(rows[:middle], longest)
            yield from self._cut(rows[middle:], longest)
        else:
            trace = self._trace()
            yield Submission(MessageKind.TELL_MANY, self.name, (data,), len(rows), trace=trace)

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


class _Leaving(Future[None]):
    """A future of messages that wait until they can leave. A cancelled `await` takes them back."""

    __slots__ = ("_session", "_submission")

    def __init__(self, session: RemoteSession, submission: Submission) -> None:
        super().__init__()
        self._session = session
        self._submission = submission
        assert submission.sent is not None
        submission.sent.add_done_callback(self._note_sent)

    @property
    def _wait_cause(self) -> WaitCause:
        return WaitCause(WaitTarget.ANSWER)

    def __await__(self) -> Generator[Any, None, None]:
        try:
            yield from super().__await__()
        except BaseException:
            if self._session.withdraw(self._submission):
                text = "a message was not sent: the wait for credit was cancelled"
                self.set_exception(CallboardError(text))
            raise

    def cancel(self) -> bool:
        """Take back what has not left. False if all has."""
        self._session.withdraw(self._submission)
        return super().cancel()

    def _note_sent(self, sent: Future[None]) -> None:
        error = sent.exception()
        if error is None:
            self.set_result(None)
        else:
            self.set_exception(error)


def _may_travel(trace: object) -> bool:
    return isinstance(trace, str) and trace.isascii() and len(trace) <= LONGEST_TRACE


def no_life(ref: object, name: str) -> AttributeError:
    """Return the error for `ready` or `ended` of a ref on something elsewhere."""
    started, ended = "an answer says that the actor runs", "it fails by ActorStopped after the end"
    what = started if name == "ready" else ended
    return AttributeError(
        f"{ref!r} has no `{name}`: an actor's start and end are not told between processes. "
        f"Send an ask: {what}; or look at `{name}` of the actor's own ref in its process"
    )
