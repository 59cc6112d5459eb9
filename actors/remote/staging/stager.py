"""What clients say of staged rows, put into the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from callboard import Actor
from callboard.core.log import log
from callboard.remote.errors import ConnectionLost, RemoteError, StageRefused
from callboard.remote.kinds import ANSWERED
from callboard.remote.staging.messages import Abort, Begin, Commit, StageEnd, StageRows
from callboard.remote.staging.parts import StagedPart
from callboard.remote.staging.store import StagingStore
from callboard.remote.staging.targets import Target

if TYPE_CHECKING:
    from callboard.remote.peer import Peer
    from callboard.remote.server_side import StagingRequest

_EXPIRE = object()


class Stager(Actor[Any]):
    """Has the store, in a thread of its own: a commit waits for the disk.

    Gets pairs of a peer and its request, or None when the peer is gone.
    """

    def __init__(
        self, store: StagingStore, targets: Sequence[Target], on_commit: Callable[[int], None]
    ) -> None:
        self._store = store
        self._targets = targets
        self._on_commit = on_commit
        self._open: dict[Peer, dict[int, StagedPart]] = {}

    def on_start(self) -> None:
        """Look for rows that are too old from now on."""
        self.every(self._store.limits.staged_age / 4, _EXPIRE)

    def receive(self, message: Any) -> None:
        """Do what a client wants, and answer it."""
        if message is _EXPIRE:
            self._store.expire()
            return
        peer, request = message
        if request is None:
            self._forget(peer)
            return
        try:
            self._handle(peer, request)
        except RemoteError as error:
            self._refuse(peer, request, error)
        except Exception as error:
            log.error("staging failed", client=peer.name, kind=request.kind.name, exc_info=error)
            self._refuse(peer, request, error)

    def _handle(self, peer: Peer, request: StagingRequest) -> None:
        said = request.content
        if isinstance(said, StageRows):
            self._store.add(self._part(peer, said.stage), said)
            peer.note_handled(request)
        elif isinstance(said, Begin):
            self._begin(peer, said)
            peer.answer(request, None)
        elif isinstance(said, StageEnd):
            part = self._part(peer, said.stage)
            del self._open[peer][said.stage]
            peer.answer_staged(request, self._store.end(part, said))
        elif isinstance(said, Commit):
            number = self._store.commit(said.name, said.winners)
            if number is not None:
                log.info("batch committed", batch=str(said.name), number=number)
                self._on_commit(number)
            peer.answer(request, None)
        elif isinstance(said, Abort):
            self._store.abort(said.name)
            peer.answer(request, None)

    def _begin(self, peer: Peer, begun: Begin) -> None:
        if peer.is_gone:  # which this actor may have been told before
            raise StageRefused("the client is gone")
        stages = self._open.setdefault(peer, {})
        if begun.stage in stages:
            raise StageRefused(f"the stage {begun.stage} is open already: {stages[begun.stage]}")
        target = self._targets[begun.entry]
        target.refuse_if_unfit()
        stages[begun.stage] = self._store.begin(begun, target.name)

    def _part(self, peer: Peer, stage: int) -> StagedPart:
        part = self._open.get(peer, {}).get(stage)
        if part is None:
            raise StageRefused(f"no stage {stage} is open")
        return part

    def _refuse(self, peer: Peer, request: StagingRequest, error: Exception) -> None:
        """Fail what wants an answer. What came of a DATA is told at the END, which will fail."""
        log.info("staging refused", client=peer.name, kind=request.kind.name, error=error)
        if request.kind in ANSWERED:
            peer.fail(request, error)
        else:
            peer.note_handled(request)

    def _forget(self, peer: Peer) -> None:
        """Drop what a client has begun and not ended: nobody else can."""
        for part in self._open.pop(peer, {}).values():
            if part.trouble is None:
                self._store.drop(part, ConnectionLost(f"the client of {part} is gone"))
