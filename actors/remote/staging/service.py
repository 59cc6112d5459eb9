"""The staging of a server: its state directory, stager, applier, and published rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from callboard import Actor, ActorSystem
from callboard.core.log import log
from callboard.remote.errors import NotPublished, RemoteError
from callboard.remote.protocol.requests import PublishedQuery, ReadRows
from callboard.remote.protocol.shard import Shard
from callboard.remote.sockets.security import PathLike
from callboard.remote.staging.applier import Applier
from callboard.remote.staging.entries import Entry
from callboard.remote.staging.stager import Stager
from callboard.remote.staging.targets import Target, counting_rows, targets_of
from callboard.remote.storage import publications
from callboard.remote.storage.journal import Journal
from callboard.remote.storage.state_directory import StateDirectory
from callboard.remote.storage.store import Backlog, StagingLimits, StagingStore
from callboard.remote.wire.codec import Codec
from callboard.remote.wire.frames import finish

if TYPE_CHECKING:
    from callboard.remote.protocol.server_side import ClientRequest
    from callboard.remote.server.peer import Peer


class PublicationReader(Actor[Any]):
    """Reads and releases published rows in the journal, on a dedicated thread.

    It gets pairs of a peer and its request.
    """

    def __init__(
        self, journal: Journal, targets: Sequence[Target], on_release: Callable[[], None]
    ) -> None:
        self._journal = journal
        self._targets = targets
        self._on_release = on_release

    def receive(self, message: tuple[Peer, ClientRequest]) -> None:
        """Handle a client's request, and answer it."""
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


_END = 5.0  # seconds that the current batch has at the end
_ANSWER = 64  # at most so many bytes of an answer with published rows precede the rows


class StagingService:
    """Takes uploads, commits and applies them, from its construction until `stop()`."""

    def __init__(
        self,
        system: ActorSystem,
        entries: Mapping[str, Entry],
        codec: Codec,
        state: PathLike,
        limits: StagingLimits | None,
        *,
        frame: int,
        shard: Shard | None,
    ) -> None:
        """Open the state, restore actors, and apply batches that are not applied yet.

        `frame` is the maximum size of a frame, in bytes. Raises StateError.
        """
        targets = targets_of(entries, codec, frame - _ANSWER)
        self._directory = StateDirectory(state, shard)
        try:
            self._journal = Journal(self._directory.journal)
        except BaseException:
            self._directory.close()
            raise
        try:
            limits = limits or StagingLimits()
            publishers = [target.name for target in targets if target.schema is not None]
            self._backlog = Backlog(self._journal, publishers, limits.published_bytes)
            self._store = StagingStore(
                self._directory,
                self._journal,
                self._backlog,
                lambda layout, payload: finish(counting_rows(codec, layout, payload)),
                limits,
            )
            self._applier = Applier(self._journal, targets, self._backlog)
            self._applier.restore()
            self._applier.apply_all()
            self._stager = system.spawn(
                Stager,
                self._store,
                targets,
                self._applier.note_commit,
                partial(counting_rows, codec),
                dedicated=True,
            )
            self._publication_reader = system.spawn(
                PublicationReader,
                self._journal,
                targets,
                self._applier.note_release,
                dedicated=True,
            )
            self._applier.start(f"{system.name}-apply")  # last: it would go on if these failed
        except BaseException:
            self._close()
            raise

    def take_request(self, peer: Peer, request: ClientRequest) -> None:
        """Pass on a client's request. On the loop's thread."""
        actor = self._publication_reader if request.kind.group == "publishing" else self._stager
        actor.tell((peer, request))

    def forget(self, peer: Peer) -> None:
        """Note that a client is gone."""
        self._stager.tell((peer, None))

    def finish(self, timeout: float) -> None:
        """Wait until all committed batches are applied, or cannot be. Raises DrainTimeout."""
        self._applier.finish(timeout)

    def stop(self) -> None:
        """Stop, and release the state directory."""
        self._stager.stop()
        self._publication_reader.stop()
        self._applier.stop(_END)
        self._close()

    def _close(self) -> None:
        self._journal.close()
        self._directory.close()

    @property
    def trouble(self) -> str:
        """Why nothing is applied any more; empty if there is no error."""
        return self._applier.trouble

    def health(self) -> dict[str, Any]:
        """Return its health, in numbers. In any thread, without waiting."""
        applier, store = self._applier, self._store
        applied = applier.applied  # before what it runs after
        committed = applier.committed
        return {
            "committed": committed,
            "unapplied": committed - applied,
            "unreleased": self._journal.unreleased,
            "unreleased_bytes": self._backlog.bytes,
            "staged_memory": store.memory,
            "staged_disk": store.disk,
            "staged_late": store.late,
            "staged_expired": store.expired,
            "trouble": applier.trouble,
        }
