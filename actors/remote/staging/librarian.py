"""Published rows, read and released by clients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from callboard import Actor
from callboard.core.log import log
from callboard.remote.errors import NotPublished, RemoteError
from callboard.remote.protocol.published_rows import PublishedQuery, ReadRows
from callboard.remote.staging.targets import Target
from callboard.remote.storage import publications
from callboard.remote.storage.journal import Journal

if TYPE_CHECKING:
    from callboard.remote.protocol.server_side import StagingRequest
    from callboard.remote.server.peer import Peer


class Librarian(Actor[Any]):
    """Reads the journal, in a thread of its own, and lets rows go: the only one that does.

    Gets pairs of a peer and its request.
    """

    def __init__(
        self, journal: Journal, targets: Sequence[Target], on_release: Callable[[], None]
    ) -> None:
        self._journal = journal
        self._targets = targets
        self._on_release = on_release

    def receive(self, message: tuple[Peer, StagingRequest]) -> None:
        """Do what a client wants, and answer it."""
        peer, request = message
        try:
            answer = self._answer(request.content)
        except RemoteError as error:
            peer.fail(request, error)
        except Exception as error:
            log.error("reading failed", client=peer.name, kind=request.kind.name, exc_info=error)
            peer.fail(request, error)
        else:
            peer.answer(request, answer)

    def _answer(self, said: Any) -> list[Any] | None:
        target = self._targets[said.entry]
        if target.schema is None:
            raise NotPublished(f"the entry {target.name!r} publishes no rows")
        if isinstance(said, PublishedQuery):
            first, end, _ = self._journal.published(target.name)
            return [first, end, target.schema.serialize().to_pybytes()]
        if isinstance(said, ReadRows):
            return list(publications.read(self._journal, target.name, said.row))
        publications.release(self._journal, target.name, said.row)
        self._on_release()
        return None
