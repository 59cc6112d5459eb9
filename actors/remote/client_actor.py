"""A client as an actor of the served system: it hands what the client sends to entry points."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any

from callboard import Actor, ActorStopped, Future
from callboard.core.text import safe_str
from callboard.remote.arrow import ArrowReader
from callboard.remote.codec import Codec
from callboard.remote.entries import Entry
from callboard.remote.errors import CodecError
from callboard.remote.kinds import MessageKind
from callboard.remote.peer import Peer
from callboard.remote.server_side import Delivery


class ClientActor(Actor[Any]):
    """Handles a client's deliveries, in their order; None is the end of them.

    A mailbox that is full holds up this actor, and so this client and no other. What the client
    gets, it gets from the thread that made it, usually that of the actor that answered.
    """

    def __init__(self, peer: Peer, entries: Sequence[Entry], codec: Codec) -> None:
        self._peer = peer
        self._entries = entries
        self._codec = codec
        self._batches = ArrowReader()

    def receive(self, deliveries: list[Delivery] | None) -> Coroutine[Any, Any, None] | None:
        """Hand on, and wait only where that is needed."""
        if deliveries is None:
            self.stop()
            return None
        for at, delivery in enumerate(deliveries):
            left = self._hand_on(delivery)
            if left:
                return self._go_on(delivery, left, deliveries[at + 1 :])
        return None

    async def _go_on(self, delivery: Delivery, left: list[Any], others: list[Delivery]) -> None:
        """Hand on what found no room, then the other deliveries."""
        for following in (*others, None):
            while left:
                turn = self._entries[delivery.entry].in_turn()
                ended = turn is None or not await _comes(turn)
                left = self._hand_on(delivery, left, ended=ended)
            if following is not None:
                delivery, left = following, self._hand_on(following)

    def _hand_on(
        self, delivery: Delivery, left: list[Any] | None = None, *, ended: bool = False
    ) -> list[Any]:
        """Hand on what there is room for, and return what there is none for: nothing for an actor
        that has `ended`. The credit comes back when all of it is handled.
        """
        entry = self._entries[delivery.entry]
        is_ask = delivery.kind is MessageKind.ASK
        turn = None
        try:
            values = self._values(delivery) if left is None else left
            room = entry.room
            if room is not None and room < len(values) and not ended:
                if room:
                    entry.tell(values[:room])
                return values[room:]
            if is_ask:
                answer = entry.ask(values[0])
                answer.add_done_callback(partial(self._answer, delivery))
                return []
            entry.tell(values)
            turn = entry.in_turn()
        except Exception as error:
            self._peer.fail(delivery, error)
            if is_ask:
                return []
        if turn is None:
            self._peer.note_handled(delivery)
        else:
            turn.add_done_callback(lambda _: self._peer.note_handled(delivery))
        return []

    def _values(self, delivery: Delivery) -> list[Any]:
        """Decode. Raises CodecError."""
        if delivery.kind is MessageKind.TELL_MANY:
            rows = self._codec.decode_rows(delivery.body)
            if len(rows) != delivery.messages:
                raise CodecError(f"{len(rows)} rows came, and {delivery.messages} were announced")
            return rows
        if delivery.kind is MessageKind.BATCH:
            return self._batches.read(delivery.body)
        return [self._codec.decode(delivery.body)]

    def _answer(self, delivery: Delivery, answer: Future[Any]) -> None:
        """On the thread that completed the answer."""
        error = answer.exception()
        if error is None:
            self._peer.answer(delivery, answer.result())
        else:
            self._peer.fail(delivery, error)

    def on_failure(self, error: BaseException, message: Any) -> None:
        """Break the connection off: what the client sent is not handled in order any more."""
        self._peer.break_off(f"the server failed: {type(error).__name__}: {safe_str(error)}")


async def _comes(turn: Future[None]) -> bool:
    """Wait for a turn; False if the actor ends before."""
    try:
        await turn
    except ActorStopped:
        return False
    return True
