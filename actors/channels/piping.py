"""A channel that ends at an actor."""

from __future__ import annotations

from collections.abc import AsyncIterable
from typing import TYPE_CHECKING, Any

from callboard.channels.task import Task

if TYPE_CHECKING:
    from callboard._inside.sending.ref import ActorRef


class Piping(Task):
    """Tells an actor each value of a channel, until the channel or the actor ends.

    Where the actor's mailbox has its senders wait, this waits, and the channel becomes full behind
    it.
    """

    __slots__ = ("_source", "_to")

    def __init__(self, source: AsyncIterable[Any], to: ActorRef[Any]) -> None:
        self._source = source
        self._to = to

    async def run(self) -> None:
        """Tell each value as it comes."""
        async for value in self._source:
            self._to.tell(value)
            if not self._to.is_alive:  # with this, the receiver ends
                return
