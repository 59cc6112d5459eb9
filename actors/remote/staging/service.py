"""The staging of a server: a state directory, the stager, the applier, and published rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from callboard import Actor, ActorSystem
from callboard.core.log import log
from callboard.remote.errors import NotPublished, RemoteError
from callboard.remote.protocol.kinds import PUBLISHING
from callboard.remote.protocol.published_rows import PublishedQuery, ReadRows
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


_END = 5.0  # seconds that the batch in work has at the end
_ANSWER = 64  # bytes of an answer with published rows that are no rows, and more


class StagingService:
    """Takes uploads, commits and applies, from the moment it is made until `stop()`."""

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
        """Open the state, give actors what they have of it, and apply what is not applied yet.

        `frame` is the longest that a client takes, in bytes. Raises StateError.
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
            self._librarian = system.spawn(
                Librarian, self._journal, targets, self._applier.note_release, dedicated=True
            )
            self._applier.start(f"{system.name}-apply")  # last: it would go on if these failed
        except BaseException:
            self._close()
            raise

    def take_request(self, peer: Peer, request: StagingRequest) -> None:
        """Do what a client wants. On the loop's thread."""
        actor = self._librarian if request.kind in PUBLISHING else self._stager
        actor.tell((peer, request))

    def forget(self, peer: Peer) -> None:
        """Take note that a client is gone."""
        self._stager.tell((peer, None))

    def finish(self, timeout: float) -> None:
        """Wait until all that was committed is applied, or cannot be now. Raises DrainTimeout."""
        self._applier.finish(timeout)

    def stop(self) -> None:
        """Stop, and let the state directory go."""
        self._stager.stop()
        self._librarian.stop()
        self._applier.stop(_END)
        self._close()

    def _close(self) -> None:
        self._journal.close()
        self._directory.close()

    @property
    def trouble(self) -> str:
        """Why nothing is applied any more; empty if all is well."""
        return self._applier.trouble

    def health(self) -> dict[str, Any]:
        """Return how it is, in numbers. In any thread; waits for nothing."""
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
