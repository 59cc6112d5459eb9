"""Published rows that wait for readers: how many bytes of them there may be."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from callboard.core.log import log
from callboard.remote.errors import UploadRefused
from callboard.remote.protocol.staged_rows import BatchName
from callboard.remote.storage.journal import Journal


class Backlog:
    """The limit of published rows: at it, commits are refused, and committed batches wait.

    The rows that a batch publishes are known when it has been applied, and it is committed before
    that. So at the limit, a batch with rows for an entry that publishes is refused, and one that is
    committed waits to be applied, until rows are released. The limit is passed by the rows of one
    batch at most.
    """

    def __init__(self, journal: Journal, publishers: Iterable[str], most: int) -> None:
        """Let `publishers`, entries, have so many bytes together; 0 is no limit."""
        self._journal = journal
        self._publishers = frozenset(publishers)
        self._most = most
        self._is_holding = False

    @property
    def bytes(self) -> int:
        """How many bytes wait, of all entries. In any thread."""
        return sum(self._journal.unreleased_bytes.values())

    @property
    def is_holding(self) -> bool:
        """Whether a committed batch still waits for a release. In any thread."""
        return self._is_holding and self._is_full

    @property
    def _is_full(self) -> bool:
        return 0 < self._most <= self.bytes

    def holds(self, name: BatchName, entries: Collection[str]) -> bool:
        """Tell whether a committed batch has to wait, and note it. Called by who applies."""
        self._is_holding = self._is_full and not self._publishers.isdisjoint(entries)
        if self._is_holding:
            log.warning("batch waits for a release", batch=str(name), bytes=self.bytes)
        return self._is_holding

    def refuse(self, name: BatchName, entries: Collection[str]) -> None:
        """Raise UploadRefused if a batch cannot be committed now.

        It may be committed later, as it is. Behind a committed batch that waits there is no room
        for any other, whatever it is for: the journal would grow by it.
        """
        if not self._is_full or (self._publishers.isdisjoint(entries) and not self._is_holding):
            return
        kept = self._journal.unreleased_bytes
        most = max(kept, key=kept.__getitem__)
        raise UploadRefused(
            f"{name} is not committed: {self.bytes} bytes of published rows wait for readers, "
            f"{kept[most]} of them of the entry {most!r}, and {self._most} may. Commit it again "
            f"when some were released, as by connection.published({most!r}).release(), or give "
            "the server more by --max-published-bytes"
        )
