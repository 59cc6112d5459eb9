"""Refs to an entry point that several servers have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn

from callboard import Future
from callboard.core.handles import CopiedAsItself
from callboard.recipient import together
from callboard.remote.client.connection import Connection
from callboard.remote.client.remote_ref import RemoteRef, missing_attribute
from callboard.remote.sharding.keys import By, ShardKey, divide_batch, shard_of
from callboard.rows.batches import iterator_over

if TYPE_CHECKING:
    import pyarrow as pa

_OF_THE_MESSAGE: Any = object()
_ROWS = 1024  # that are divided at a time, times the number of shards


class ShardedRef(CopiedAsItself):
    """A handle to the entry points of one name, each of which gets the rows of its keys.

    Thread-safe. Rows with the same key from one thread are handled in order; there is no order
    between shards. A shard without credit blocks the sender, also for the other shards.
    """

    def __init__(self, connections: Iterable[Connection], name: str, by: By) -> None:
        self.name = name
        self.refs = tuple(connection.ref(name) for connection in connections)
        """The ref of each shard, for messages to one shard."""
        self._key = ShardKey(by, len(self.refs))

    def of_key(self, key: Any) -> RemoteRef:
        """Return the ref of the shard that has this key. Raises CodecError for an invalid key."""
        return self.refs[shard_of(key, len(self.refs))]

    def tell(self, message: Any) -> None:
        """Send `message` to the shard of its key. Waits and raises like `RemoteRef.tell()`.

        Raises CodecError for a row without a key.
        """
        self.refs[self._key.of_row(message)].tell(message)

    def atell(self, message: Any) -> Future[None]:
        """Send `message` as soon as the shard of its key accepts it; return a future of that."""
        return self.refs[self._key.of_row(message)].atell(message)

    def tell_many(self, messages: Iterable[Any]) -> None:
        """Send each of `messages` to the shard of its key. Waits and raises like `tell`.

        Messages that were sent before an error stay sent.
        """
        for ref, part in self._parts(messages, "tell_many"):
            ref.tell_many(part)

    def atell_many(self, messages: Iterable[Any]) -> Future[None]:
        """Send each of `messages` as soon as the shard of its key accepts it; return a future.

        It is done when all are sent, and fails with the first message that is refused or lost.
        """
        parts = self._parts(messages, "atell_many")
        return together([ref.atell_many(part) for ref, part in parts])

    def _parts(self, messages: Iterable[Any], what: str) -> Iterator[tuple[RemoteRef, list[Any]]]:
        for rows in portions(messages, what, _ROWS * len(self.refs)):
            for ref, part in zip(self.refs, self._key.divide(rows), strict=True):
                if part:
                    yield ref, part

    def send_batch(self, batch: pa.RecordBatch) -> None:
        """Send each shard the rows of its keys as a batch, but no empty batches.

        Waits and raises like `tell`. Raises ConfigError if the key is a function.
        """
        for ref, part in zip(self.refs, divide_batch(batch, self._key), strict=True):
            if part.num_rows:
                ref.send_batch(part)

    def ask(
        self, message: Any, timeout: float | None = None, *, key: Any = _OF_THE_MESSAGE
    ) -> Future[Any]:
        """Ask the shard of `key`, or by default the shard of the message's own key.

        Otherwise like `RemoteRef.ask()`. Raises CodecError for an invalid key.
        """
        if key is _OF_THE_MESSAGE:
            return self.refs[self._key.of_row(message)].ask(message, timeout)
        return self.of_key(key).ask(message, timeout)

    def ask_all(self, message: Any, timeout: float | None = None) -> list[Future[Any]]:
        """Ask every shard, and return the futures of their answers, in the order of the shards."""
        return [ref.ask(message, timeout) for ref in self.refs]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise missing_attribute(self, name)

    def __repr__(self) -> str:
        return f"<ShardedRef {self.name!r} on {len(self.refs)} shards>"


def portions(rows: Iterable[Any], what: str, size: int) -> Iterator[list[Any]]:
    """Cut rows into lists of at most `size`. Raises TypeError, which names the caller."""
    source = iterator_over(f"{what}()", rows)
    while portion := list(islice(source, size)):
        yield portion
