"""Rows that count once, from a client: uploads, commits and aborts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import count, islice
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from callboard import Future
from callboard.core import checks
from callboard.core.errors import AskTimeout
from callboard.core.handles import public_names
from callboard.remote.errors import ConnectionLost, RemoteError
from callboard.remote.protocol import staged_rows
from callboard.remote.protocol.client_side import BEFORE_DATA, ClientSide
from callboard.remote.protocol.conversation import Submission
from callboard.remote.protocol.kinds import ANSWERED, PUBLISHING, MessageKind
from callboard.remote.protocol.staged_rows import BatchName, Layout, StagedAttempt
from callboard.remote.wire.arrow_ipc import write_batch
from callboard.remote.wire.frames import Buffer
from callboard.rows.batches import iterator_over

if TYPE_CHECKING:
    import pyarrow as pa

    from callboard.remote.client.session import SessionOwner


_FOR_AN_ENTRY = PUBLISHING | {MessageKind.BEGIN}


class UploadConnection:
    """The connection that an upload was begun on: no other knows of it."""

    def __init__(self) -> None:
        self.side: ClientSide | None = None


class UploadRequest(Submission):
    """A request. One of an open upload goes over the upload's own connection, or fails."""

    __slots__ = ("upload",)

    hears_of_trouble = False  # it is another's

    def __init__(
        self,
        kind: MessageKind,
        *parts: Buffer,
        upload: UploadConnection | None = None,
        entry: str = "",
    ) -> None:
        """`entry` is that of a BEGIN, or of a request about published rows."""
        answer: Future[Any] | None = Future() if kind in ANSWERED else None
        super().__init__(kind, entry, parts, int(kind in ANSWERED), answer)
        self.upload = upload

    def fits(self, side: ClientSide, places: Mapping[str, int]) -> bool:
        """Tell whether it may be sent now."""
        if self.kind in _FOR_AN_ENTRY:
            return super().fits(side, places)
        return side.has_room(self.messages, self.size)

    def loss(self, side: ClientSide | None) -> ConnectionLost | None:
        """Return why no connection will ever take it, from `side` on, or None."""
        if self.kind is MessageKind.BEGIN or self.upload is None or self.upload.side is side:
            return None
        return ConnectionLost("the connection was lost in the middle of an upload")

    def obstacle(self, side: ClientSide, places: Mapping[str, int]) -> RemoteError | None:
        """Return why the server will never take it, or None."""
        if self.kind in _FOR_AN_ENTRY:
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
        entry = None
        if self.kind in _FOR_AN_ENTRY:
            entry = places[self.entry]
        if self.kind is MessageKind.BEGIN:
            assert self.upload is not None
            self.upload.side = side
        return side.request(self.kind, entry, self.parts, self.size)


_ROWS = 1536  # in a frame: of short rows, more or fewer take longer
_SPARE = 64  # bytes of a frame that are no rows, and more

_numbers = count()
_numbering = Lock()


class UploadWriter:
    """One attempt at a partition of a batch: a context manager, for one thread.

    Leaving it waits until all rows are staged; then `staged` is the value for a commit. Leaving it
    by an exception leaves the rows to the server, which drops them with the connection, or by age.
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
        """Which attempt is staged, with how many rows: small, and made to be sent to the driver."""

    def __enter__(self) -> Self:
        """Begin. Raises UploadRefused, BatchCommitted, ConnectionLost."""
        body = staged_rows.begin_body(self._number, self._name, self._partition, self._attempt)
        begin = UploadRequest(MessageKind.BEGIN, body, upload=self._upload, entry=self._entry)
        request(self._connection, begin, "upload")
        return self

    def send_many(self, rows: Iterable[Any]) -> None:
        """Upload rows, in their order. Waits for credit; raises ConnectionLost, CodecError.

        The server's objections to them are raised at the end of the upload.
        """
        source = iterator_over("send_many()", rows)
        while some := list(islice(source, _ROWS)):
            for data, size in self._cut(some):
                self._send(Layout.ROWS, size, (data,), "send_many")

    def send_batch(self, batch: pa.RecordBatch) -> None:
        """Upload the rows of an Arrow record batch, which the actor gets as one. As `send_many`.

        A batch without rows uploads nothing.
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
        body = staged_rows.end_body(self._number, self._rows, self._checksum)
        rows = request(
            self._connection, UploadRequest(MessageKind.END, body, upload=self._upload), "upload"
        )
        if rows != self._rows:
            raise RemoteError(f"the server has staged {rows} rows, and {self._rows} were sent")
        self.staged = StagedAttempt(self._partition, self._attempt, self._rows)

    def _send(self, layout: Layout, rows: int, payload: tuple[Buffer, ...], what: str) -> None:
        head = staged_rows.data_head(self._number, self._frames, layout, rows)
        submission = UploadRequest(MessageKind.DATA, head, *payload, upload=self._upload)
        self._connection._deliver(submission, what)
        self._frames += 1
        self._rows += rows
        for part in payload:
            self._checksum = staged_rows.checksum(part, self._checksum)

    def _cut(self, rows: list[Any]) -> Iterator[tuple[bytes, int]]:
        """Put rows into one frame, or into several where one would be too long."""
        server = self._connection.session.server
        data = self._connection.codec.encode_rows(rows)
        if server is not None and len(rows) > 1 and len(data) + _SPARE > server.longest:
            middle = len(rows) // 2
            yield from self._cut(rows[:middle])
            yield from self._cut(rows[middle:])
            return
        yield data, len(rows)


def request(
    connection: SessionOwner, submission: UploadRequest, what: str, timeout: float | None = None
) -> Any:
    """Send a submission, and return the answer. Raises the server's errors, and ConnectionLost."""
    connection._refuse_to_block(what)
    answer = submission.answer
    assert answer is not None
    seconds = connection.timeout if timeout is None else timeout
    connection.session.submit(submission)
    try:
        return answer.result(seconds)
    except AskTimeout:
        connection.session.withdraw(submission)
        raise ConnectionLost(f"{what}: no answer in {seconds:g} s; it may still come") from None
    except BaseException:
        connection.session.withdraw(submission)
        raise


def commit(
    connection: SessionOwner, name: BatchName, winners: Iterable[StagedAttempt], timeout: float
) -> None:
    """Commit a batch, over as many connections as it takes."""
    body = staged_rows.commit_body(connection.codec, name, staged_rows.checked_winners(winners))
    repeat(
        connection, partial(UploadRequest, MessageKind.COMMIT, body), f"commit of {name}", timeout
    )


def abort(connection: SessionOwner, name: BatchName, timeout: float) -> None:
    """Abort a batch, over as many connections as it takes."""
    body = staged_rows.abort_body(name)
    repeat(connection, partial(UploadRequest, MessageKind.ABORT, body), f"abort of {name}", timeout)


def repeat(
    connection: SessionOwner, submission: Callable[[], UploadRequest], what: str, timeout: float
) -> Any:
    """Ask until there is an answer, and return it: it is the same, however often it is asked."""
    deadline = time.monotonic() + timeout
    while True:
        left = max(0.0, deadline - time.monotonic())
        try:
            return request(connection, submission(), what, left)
        except ConnectionLost as error:
            if not left or connection.session.is_over:
                raise ConnectionLost(f"{what}: unknown after {timeout:g} s: {error}") from error
