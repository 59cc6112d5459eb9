"""Each message to the ref of its key."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from callboard.core.batches import iterator_over
from callboard.core.handles import CopiedAsItself
from callboard.routers.checks import checked_refs

if TYPE_CHECKING:
    from callboard import Future
    from callboard.recipient import Recipient
    from callboard.remote.sharding.keys import By


class KeyRouter(CopiedAsItself):
    """Sends each message to the ref that has its key. Safe in every thread.

    A key has the same place in every process, and the one that it has with as many shards of
    servers. Messages of a key that one sender sent are handled in their order.
    """

    def __init__(self, refs: Iterable[Recipient[Any]], by: By) -> None:
        from callboard.remote.sharding.keys import ShardKey

        self.refs = checked_refs("KeyRouter", refs)
        self._key = ShardKey(by, len(self.refs))

    def tell(self, message: Any) -> None:
        """Send `message` to the ref of its key. Raises CodecError for a message without a key."""
        self.refs[self._key.of_row(message)].tell(message)

    def tell_many(self, messages: Iterable[Any]) -> None:
        """Send each of `messages` to the ref of its key.

        Messages sent before an error stay sent.
        """
        for message in iterator_over("tell_many()", messages, "messages"):
            self.tell(message)

    def ask(self, message: Any, timeout: float | None = None) -> Future[Any]:
        """Ask the ref of the message's key, and return the future of its answer."""
        return self.refs[self._key.of_row(message)].ask(message, timeout)

    def stop(self) -> None:
        """Stop each actor behind the refs, after the message in work."""
        for ref in self.refs:
            ref.stop()  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"<KeyRouter over {len(self.refs)} refs>"
