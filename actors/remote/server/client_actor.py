"""The actor of a client in the served system, which passes its messages to entry points."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from callboard import Actor, ActorStopped, Future
from callboard.core.errors import MailboxFull
from callboard.core.text import safe_str
from callboard.remote.errors import CodecError
from callboard.remote.protocol.kinds import MessageKind
from callboard.remote.protocol.server_side import Delivery
from callboard.remote.server.peer import Peer
from callboard.remote.staging.entries import Entry
from callboard.remote.wire.arrow_ipc import ArrowReader
from callboard.remote.wire.codec import Codec
from callboard.remote.wire.frames import finish

R = TypeVar("R")

_LARGE = 32 * 1024  # bytes: larger ones may take long to decode, and are decoded in slices


class ClientActor(Actor[Any]):
    """Handles a client's deliveries, in order; the message None ends them.

    A full mailbox holds up this actor, and so this client alone. Large frames are decoded in
    slices, between which others have their turns. The thread that completed an answer sends
    it, usually that of the actor that answered.
    """

    def __init__(self, peer: Peer, entries: Sequence[Entry], codec: Codec) -> None:
        self._peer = peer
        self._entries = entries
        self._codec = codec
        self._batches = ArrowReader()

    def receive(self, deliveries: list[Delivery] | None) -> Coroutine[Any, Any, None] | None:
        """Pass deliveries on, and wait only if that is needed."""
        if deliveries is None:
            self.stop()
            return None
        for at, delivery in enumerate(deliveries):
            if len(delivery.body) > _LARGE:
                return self._go_on(deliveries[at:])
            left = self._hand_on(delivery, self._values(delivery))
            if left:
                return self._go_on(deliveries[at:], left)
        return None

    async def _go_on(self, deliveries: list[Delivery], left: list[Any] | None = None) -> None:
        """Pass on the rest of the first delivery, for which there was no room, then the others."""
        for delivery in deliveries:
            if left is None:
                left = self._hand_on(delivery, await self._values_in_slices(delivery))
            while left:
                turn = self._entries[delivery.entry].in_turn()
                ended = turn is None or not await _wait_for_turn(turn)
                left = self._hand_on(delivery, left, ended=ended)
            left = None

    def _hand_on(
        self, delivery: Delivery, values: list[Any] | CodecError, *, ended: bool = False
    ) -> list[Any]:
        """Pass on messages while there is room, and return the rest.

        There is no rest for an actor that has `ended`. The credit comes back when all are handled.
        """
        entry = self._entries[delivery.entry]
        is_ask = delivery.kind is MessageKind.ASK
        if isinstance(values, CodecError):
            self._refuse(delivery, values)
            return []
        try:
            room = entry.room
            if room is not None and room < len(values) and not ended:
                if room:
                    self._send_in_span(delivery, entry.tell, values[:room])
                return values[room:]
            if is_ask:
                answer = self._send_in_span(delivery, entry.ask, values[0])
                answer.add_done_callback(partial(self._answer, delivery))
                return []
            told = self._send_in_span(delivery, entry.tell, values)
            if told is not None:
                told.add_done_callback(partial(self._note_told, delivery))
                return []
            turn = entry.in_turn()
        except Exception as error:
            self._refuse(delivery, error)
        else:
            self._note_in_turn(delivery, turn)
        return []

    def _refuse(self, delivery: Delivery, error: Exception) -> None:
        """Send the client the error. The credit comes back; for an ask the error gives it back."""
        if delivery.kind is MessageKind.ASK:
            self._note_done(delivery)
        self._peer.fail(delivery, error)
        if delivery.kind is MessageKind.ASK:
            return
        turn = None
        if isinstance(error, MailboxFull | CodecError):  # the entry may have those before it
            with suppress(TypeError):  # a task takes no messages
                turn = self._entries[delivery.entry].in_turn()
        self._note_in_turn(delivery, turn)

    def _note_in_turn(self, delivery: Delivery, turn: Future[None] | None) -> None:
        """Give the credit back when those before it are handled: a pool counts on this order."""

        def note(_: Any = None) -> None:
            self._note_done(delivery)
            self._peer.note_handled(delivery)

        if turn is None:
            note()
        else:
            turn.add_done_callback(note)

    def _note_done(self, delivery: Delivery) -> None:
        self._entries[delivery.entry].note_done(self._peer, delivery.sequence)

    def _send_in_span(self, delivery: Delivery, send: Callable[[Any], R], values: Any) -> R:
        """Send, in an instrumented system within the span of the sender."""
        spans = None if delivery.trace is None else self.system._runtime.spans
        if spans is None or delivery.trace is None:
            return send(values)
        return spans.continued(delivery.trace).run(send, values)

    def _note_told(self, delivery: Delivery, told: Future[None]) -> None:
        """On the telling thread: another process has taken it, or not."""
        error = told.exception()
        if error is not None:
            self._peer.fail(delivery, error)
        self._peer.note_handled(delivery)

    def _values(self, delivery: Delivery) -> list[Any] | CodecError:
        """Decode at once. Return the values, or the CodecError."""
        try:
            return finish(self._decoding(delivery))
        except CodecError as error:
            return error

    async def _values_in_slices(self, delivery: Delivery) -> list[Any] | CodecError:
        """Decode in slices, between which others have their turns."""
        decoding = self._decoding(delivery)
        while True:
            try:
                next(decoding)
            except StopIteration as end:
                values: list[Any] = end.value
                return values
            except CodecError as error:
                return error
            await self.sleep(0)

    def _decoding(self, delivery: Delivery) -> Generator[None, None, list[Any]]:
        """Decode in slices. Raises CodecError."""
        values = yield from self._decoding_values(delivery)
        self._entries[delivery.entry].note_begun(self._peer, delivery.sequence, values)
        return values

    def _decoding_values(self, delivery: Delivery) -> Generator[None, None, list[Any]]:
        if delivery.kind is MessageKind.TELL_MANY:
            rows = yield from self._codec.decoding_rows(delivery.body)
            if len(rows) != delivery.messages:
                raise CodecError(
                    f"expected {delivery.messages} rows, as announced, got {len(rows)}"
                )
            return rows
        if delivery.kind is MessageKind.BATCH:
            return (yield from self._batches.reading(delivery.body))
        return [(yield from self._codec.decoding(delivery.body))]

    def _answer(self, delivery: Delivery, answer: Future[Any]) -> None:
        """On the thread that completed the answer."""
        self._note_done(delivery)
        error = answer.exception()
        if error is None:
            self._peer.answer(delivery, answer.result())
        else:
            self._peer.fail(delivery, error)

    def on_failure(self, error: BaseException, message: Any) -> None:
        """Break the connection off: the order of the client's messages is lost."""
        self._peer.break_off(f"the server failed: {type(error).__name__}: {safe_str(error)}")


async def _wait_for_turn(turn: Future[None]) -> bool:
    """Wait for a turn. Returns False if the actor ends before it."""
    try:
        await turn
    except ActorStopped:
        return False
    return True
