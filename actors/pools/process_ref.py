"""The ref of an actor in a worker process."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from callboard import Future
from callboard.pools.in_flight import InFlight
from callboard.remote.client.connection import Connection
from callboard.remote.client.remote_ref import RemoteRef
from callboard.remote.client.session import may_block
from callboard.remote.errors import RemoteError
from callboard.remote.protocol.conversation import OnLoss, Submission
from callboard.remote.protocol.kinds import MessageKind

if TYPE_CHECKING:
    import pyarrow as pa


class ProcessRef(RemoteRef):
    """A handle on the actor in one process of a pool. Safe in every thread.

    As RemoteRef, but `tell` and `tell_many` never wait in an actor, in a coroutine, or in a
    callback of an answer. Messages wait there in this process. They are dead letters if they can
    never leave.
    """

    def __init__(
        self, connection: Connection, entry: str, path: str, in_flight: InFlight, on_loss: OnLoss
    ) -> None:
        super().__init__(connection, entry)
        self.path = path
        self._in_flight = in_flight
        self._on_loss = on_loss
        self._retire: Callable[[], object] = _nothing

    def tell(self, message: Any) -> None:
        """Send `message`. Waits and raises like `RemoteRef.tell`, where the thread may wait."""
        with self._in_flight:
            if self._may_wait():
                super().tell(message)
            else:
                self._leave(self._submission(MessageKind.TELL, message))

    def tell_many(self, messages: Iterable[Any]) -> None:
        """Send all of `messages`, in their order, many in a frame."""
        with self._in_flight:
            if self._may_wait():
                super().tell_many(messages)
            else:
                for submission in self._submissions(messages):
                    self._leave(submission)

    def atell(self, message: Any) -> Future[None]:
        """Send `message` as soon as the process takes it; return a future that is done then."""
        with self._in_flight:
            return super().atell(message)

    def atell_many(self, messages: Iterable[Any]) -> Future[None]:
        """Send all of `messages` as soon as the process takes them; return a future."""
        with self._in_flight:
            return super().atell_many(messages)

    def send_batch(self, batch: pa.RecordBatch) -> None:
        """Send an Arrow record batch as one message. Waits and raises like `RemoteRef.tell`."""
        with self._in_flight:
            super().send_batch(batch)

    def asend_batch(self, batch: pa.RecordBatch) -> Future[None]:
        """Send an Arrow record batch as soon as the process takes it; return a future."""
        with self._in_flight:
            return super().asend_batch(batch)

    def ask(self, message: Any, timeout: float | None = None) -> Future[Any]:
        """Send `message`, and return a future of the answer.

        It fails with ConnectionLost if the process ends before it has answered.
        """
        with self._in_flight:
            return super().ask(message, timeout)

    def stop(self, *, after_queue: bool = False) -> None:
        """End the process when all that was sent is handled. For the router."""
        self._retire()

    @property
    def queue_length(self) -> int:
        """How many messages were sent, and are not known to be handled."""
        return self.connection._own_session.outstanding

    def refuse(self, why: str) -> None:
        """Have all further use raise ConnectionLost."""
        self._in_flight.close(why)

    def _may_wait(self) -> bool:
        return may_block() and not self.connection._own_session.is_read_here

    def _leave(self, submission: Submission) -> None:
        """Have a message leave as soon as it can; it is a dead letter if it cannot."""

        def look(told: Future[None]) -> None:
            error = told.exception()
            if isinstance(error, RemoteError):
                self._on_loss([submission], error)

        self._soon(submission).add_done_callback(look)

    def __repr__(self) -> str:
        return f"<ProcessRef {self.path}>"


def _nothing() -> None:
    pass
