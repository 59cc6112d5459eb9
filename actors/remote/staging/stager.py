"""The actor that stores clients' staged rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from callboard import Actor
from callboard.core.log import log
from callboard.remote.errors import CodecError, ConnectionLost, RemoteError, UploadRefused
from callboard.remote.protocol.kinds import Rejected
from callboard.remote.protocol.requests import (
    Abort,
    Begin,
    Layout,
    PackedCommit,
    UploadEnd,
    UploadRows,
)
from callboard.remote.staging.targets import Target
from callboard.remote.storage.parts import StagedPart
from callboard.remote.storage.store import StagingStore
from callboard.remote.wire.frames import Buffer

if TYPE_CHECKING:
    from callboard.remote.protocol.server_side import ClientRequest
    from callboard.remote.server.peer import Peer

_EXPIRE = object()
_GO_ON = object()

Work: TypeAlias = Generator[None, None, None]


class Stager(Actor[Any]):
    """Owns the store. It has a dedicated thread, because a commit waits for the disk.

    It gets pairs of a peer and its request, or None when the peer is gone. Long work is done in
    slices. Other peers have their turns between them, and the same peer's next request waits for
    the last one.
    """

    def __init__(
        self,
        store: StagingStore,
        targets: Sequence[Target],
        on_commit: Callable[[int], None],
        counting: Callable[[Layout, Buffer], Generator[None, None, int]] | None = None,
    ) -> None:
        """Own the store. `counting` counts rows in slices; without it the store counts at once."""
        self._store = store
        self._targets = targets
        self._on_commit = on_commit
        self._counting = counting
        self._open: dict[Peer, dict[int, StagedPart]] = {}
        self._work: dict[Peer, Work] = {}  # whose request is not complete
        self._waiting: dict[Peer, deque[ClientRequest | None]] = {}  # of those

    def on_start(self) -> None:
        """Check for expired rows from now on."""
        self.every(self._store.limits.staged_age / 4, _EXPIRE)

    def receive(self, message: Any) -> None:
        """Handle a client's request, and answer it."""
        if message is _EXPIRE:
            self._store.expire()
            return
        peer, request = message
        if request is _GO_ON:
            self._go_on(peer)
        elif peer in self._work:
            self._waiting[peer].append(request)
        else:
            self._begin_work(peer, request)

    def _begin_work(self, peer: Peer, request: ClientRequest | None) -> None:
        if request is None:
            self._forget(peer)
            return
        work = self._handling(peer, request)
        if not _is_done(work):
            self._work[peer] = work
            self._waiting[peer] = deque()
            self.ref.tell((peer, _GO_ON))

    def _go_on(self, peer: Peer) -> None:
        """Do another slice; after the last, the requests that have waited for it."""
        if not _is_done(self._work[peer]):
            self.ref.tell((peer, _GO_ON))
            return
        del self._work[peer]
        waiting = self._waiting.pop(peer)
        while waiting and peer not in self._work:
            self._begin_work(peer, waiting.popleft())
        if waiting:
            self._waiting[peer] = waiting

    def _handling(self, peer: Peer, request: ClientRequest) -> Work:
        try:
            yield from self._handle(peer, request)
        except Rejected as error:
            peer.reject(error)
        except RemoteError as error:
            self._refuse(peer, request, error)
        except Exception as error:
            log.error("staging failed", client=peer.name, kind=request.kind.name, exc_info=error)
            self._refuse(peer, request, error)

    def _handle(self, peer: Peer, request: ClientRequest) -> Work:
        said = request.content
        if isinstance(said, UploadRows):
            part = self._part(peer, said.upload)
            self._store.add(part, said, (yield from self._count(part, said)))
            peer.note_handled(request)
        elif isinstance(said, Begin):
            self._begin(peer, said)
            peer.answer(request, None)
        elif isinstance(said, UploadEnd):
            part = self._part(peer, said.upload)
            del self._open[peer][said.upload]
            peer.answer_staged(request, self._store.end(part, said))
        elif isinstance(said, PackedCommit):
            commit = yield from said.reading()
            number = self._store.commit(commit.name, commit.winners)
            if number is not None:
                log.info("batch committed", batch=str(commit.name), number=number)
                self._on_commit(number)
            peer.answer(request, None)
        elif isinstance(said, Abort):
            self._store.abort(said.name)
            peer.answer(request, None)

    def _count(self, part: StagedPart, said: UploadRows) -> Generator[None, None, int | None]:
        """Count rows in slices, or return None to leave it to the store.

        Unreadable rows end the part.
        """
        if self._counting is None or part.trouble is not None:
            return None
        try:
            return (yield from self._counting(said.layout, said.payload))
        except CodecError as error:
            if part.trouble is None:
                self._store.drop(part, error)
            raise

    def _begin(self, peer: Peer, begun: Begin) -> None:
        if peer.is_gone:  # this actor may know already
            raise UploadRefused("the client has disconnected")
        uploads = self._open.setdefault(peer, {})
        if begun.upload in uploads:
            raise UploadRefused(
                f"the upload {begun.upload} is already open: {uploads[begun.upload]}"
            )
        target = self._targets[begun.entry]
        target.refuse_if_unfit()
        uploads[begun.upload] = self._store.begin(begun, target.name)

    def _part(self, peer: Peer, upload: int) -> StagedPart:
        part = self._open.get(peer, {}).get(upload)
        if part is None:
            raise UploadRefused(f"no upload {upload} is open")
        return part

    def _refuse(self, peer: Peer, request: ClientRequest, error: Exception) -> None:
        """Fail a request. A failed DATA is reported by its END, which will fail."""
        log.info("staging refused", client=peer.name, kind=request.kind.name, error=error)
        if request.kind.is_answered:
            peer.fail(request, error)
        else:
            peer.note_handled(request)

    def _forget(self, peer: Peer) -> None:
        """Drop the open uploads of a client: nobody can end them."""
        for part in self._open.pop(peer, {}).values():
            if part.trouble is None:
                self._store.drop(part, ConnectionLost(f"the client of {part} is gone"))


def _is_done(work: Work) -> bool:
    """Do a slice, and tell whether it was the last."""
    return next(work, work) is work
