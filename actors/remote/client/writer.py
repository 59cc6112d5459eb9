"""A client's uploads, commits and aborts, of rows that count once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import count, islice
from math import inf
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from callboard import Future
from callboard.core import checks
from callboard.core.errors import AskTimeout
from callboard.core.handles import public_names
from callboard.remote.errors import ConnectionLost, RemoteError
from callboard.remote.protocol.client_side import BEFORE_DATA, ClientSide
from callboard.remote.protocol.conversation import Submission
from callboard.remote.protocol.kinds import MessageKind
from callboard.remote.protocol.requests import (
    BatchName,
    Layout,
    StagedAttempt,
    checked_winners,
    payload_checksum,
)
from callboard.remote.wire.arrow_ipc import write_batch
from callboard.remote.wire.frames import Buffer
from callboard.rows.batches import iterator_over

if TYPE_CHECKING:
    import pyarrow as pa

    from callboard.remote.client.session import SessionOwner


class UploadConnection:
    """The connection that an upload was begun on, the only one that it can use."""

    def __init__(self) -> None:
        self.side: ClientSide | None = None


class UploadRequest(Submission):
    """A request. That of an open upload goes over the upload's own connection, or fails."""

    __slots__ = ("has_entry", "numbers", "upload")

    raises_earlier_errors = False  # these are of other messages

    def __init__(
        self,
        kind: MessageKind,
        numbers: Sequence[int] = (),
        *parts: Buffer,
        upload: UploadConnection | None = None,
        entry: str | None = None,
    ) -> None:
        """`numbers` begin the body, after the place of the `entry` where the request has one."""
        answer: Future[Any] | None = Future() if kind.is_answered else None
        super().__init__(kind, entry or "", parts, int(kind.is_answered), answer)
        self.size += kind.layout.size
        self.numbers = numbers
        self.has_entry = entry is not None
        self.upload = upload

    def fits(self, side: ClientSide, places: Mapping[str, int]) -> bool:
        """Tell whether it may be sent now."""
        if self.has_entry:
            return super().fits(side, places)
        return side.has_room(self.messages, self.size)

    def loss(self, side: ClientSide | None) -> ConnectionLost | None:
        """Return why no connection will ever take it, from `side` on, or None."""
        if self.kind is MessageKind.BEGIN or self.upload is None or self.upload.side is side:
            return None
        return ConnectionLost("the connection was lost in the middle of an upload")

    def obstacle(self, side: ClientSide, places: Mapping[str, int]) -> RemoteError | None:
        """Return why the server will never take it, or None."""
        if self.has_entry:
            return super().obstacle(side, places)
        server = side.server
        assert server is not None
        size, most = self.size + BEFORE_DATA, server.longest
        if size > most:
            return RemoteError(f"a {self.kind.name} of {size} bytes; the server takes {most}")
        return None

    def dispatch(
        self, side: ClientSide, places: Mapping[str, int]
    ) -> tuple[int, tuple[Buffer, ...]]:
        """Return its sequence number, and the data to send."""
        if self.kind is MessageKind.BEGIN:
            assert self.upload is not None
            self.upload.side = side
        numbers = (places[self.entry], *self.numbers) if self.has_entry else self.numbers
        return side.request(self.kind, numbers, self.parts, self.size)


_ROWS = 1536  # in a frame: of short rows, more or fewer take longer

_numbers = count()
_numbering = Lock()


class UploadWriter:
    """One attempt at a partition of a batch: a context manager, used by one thread.

    Leaving it waits until all rows are staged; `staged` is then the value for a commit. After an
    exception the server drops the rows, with the connection or by age.
    """

    __dir__ = public_names

    def __init__(
        self, connection: SessionOwner, entry: str, name: BatchName, partition: int, attempt: int
    ) -> None:
        checks.whole("partition", partition, 0, 2**32 - 1)
        checks.whole("attempt", attempt, 0, 2**64 - 1)
        self._connection = connection
        self._entry = entry
        self._name = name
        self._partition = partition
        self._attempt = attempt
        with _numbering:
            self._number = next(_numbers) % 2**32
        self._upload = UploadConnection()
        self._frames = 0
        self._rows = 0
        self._checksum = 0
        self.staged: StagedAttempt | None = None
        """The staged attempt with its number of rows, small enough to send to a driver."""

    def __enter__(self) -> Self:
        """Begin the upload. Raises UploadRefused, BatchCommitted, ConnectionLost."""
        numbers = self._number, self._partition, self._attempt, self._name.batch
        job = self._name.job.encode()
        begin = UploadRequest(
            MessageKind.BEGIN, numbers, job, upload=self._upload, entry=self._entry
        )
        request(self._connection, begin, "upload")
        return self

    def send_many(self, rows: Iterable[Any]) -> None:
        """Upload rows in order. Waits for credit. Raises ConnectionLost, CodecError.

        If the server refuses them, that is raised at the end of the upload.
        """
        source = iterator_over("send_many()", rows)
        while some := list(islice(source, _ROWS)):
            server = self._connection._own_session.server
            longest = inf if server is None else server.longest
            for data, size in self._connection._codec.encode_lots(some, longest):
                self._send(Layout.ROWS, size, (data,), "send_many")

    def send_batch(self, batch: pa.RecordBatch) -> None:
        """Upload an Arrow record batch, which the actor gets as one. Otherwise like `send_many`.

        An empty batch uploads nothing.
        """
        data = write_batch(batch)
        if batch.num_rows:
            self._send(Layout.ARROW, batch.num_rows, data, "send_batch")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            return
        numbers = self._number, self._rows, self._checksum
        end = UploadRequest(MessageKind.END, numbers, upload=self._upload)
        rows = request(self._connection, end, "upload")
        if rows != self._rows:
            raise RemoteError(f"sent {self._rows} rows, and the server has staged {rows}")
        self.staged = StagedAttempt(self._partition, self._attempt, self._rows)

    def _send(self, layout: Layout, rows: int, payload: tuple[Buffer, ...], what: str) -> None:
        numbers = self._number, self._frames, layout, rows
        submission = UploadRequest(MessageKind.DATA, numbers, *payload, upload=self._upload)
        self._connection._deliver(submission, what)
        self._frames += 1
        self._rows += rows
        for part in payload:
            self._checksum = payload_checksum(part, self._checksum)


def request(
    connection: SessionOwner, submission: UploadRequest, what: str, timeout: float | None = None
) -> Any:
    """Send a submission, and return the answer. Raises the server's errors, and ConnectionLost."""
    connection._refuse_to_block(what)
    answer = submission.answer
    assert answer is not None
    seconds = connection.timeout if timeout is None else timeout
    connection._own_session.submit(submission)
    try:
        return answer.result(seconds)
    except AskTimeout:
        connection._own_session.withdraw(submission)
        raise ConnectionLost(f"{what}: no answer in {seconds:g} s; it may still come") from None
    except BaseException:
        connection._own_session.withdraw(submission)
        raise


def commit(
    connection: SessionOwner, name: BatchName, winners: Iterable[StagedAttempt], timeout: float
) -> None:
    """Commit a batch, over as many connections as it takes."""
    chosen = [list(each) for each in checked_winners(winners)]
    body = connection._codec.encode([name.job, chosen])
    submission = partial(UploadRequest, MessageKind.COMMIT, (name.batch,), body)
    repeat(connection, submission, f"commit of {name}", timeout)


def abort(connection: SessionOwner, name: BatchName, timeout: float) -> None:
    """Abort a batch, over as many connections as it takes."""
    submission = partial(UploadRequest, MessageKind.ABORT, (name.batch,), name.job.encode())
    repeat(connection, submission, f"abort of {name}", timeout)


def repeat(
    connection: SessionOwner, submission: Callable[[], UploadRequest], what: str, timeout: float
) -> Any:
    """Repeat an idempotent request until there is an answer, and return it."""
    deadline = time.monotonic() + timeout
    while True:
        left = max(0.0, deadline - time.monotonic())
        try:
            return request(connection, submission(), what, left)
        except ConnectionLost as error:
            if not left or connection._own_session.is_over:
                raise ConnectionLost(f"{what}: unknown after {timeout:g} s: {error}") from error
