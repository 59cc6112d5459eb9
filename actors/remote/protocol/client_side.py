"""The client's side of one connection, without I/O: frames in, frames out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Any, NamedTuple

from callboard.remote.errors import CodecError, ConnectionRejected
from callboard.remote.protocol.kinds import (
    MAGIC,
    VERSION,
    Account,
    Goodbye,
    GoodbyeReason,
    MessageKind,
    Rejected,
    by_number,
    goodbye_frame,
    kind_of,
    read_goodbye,
)
from callboard.remote.protocol.shard import Shard
from callboard.remote.wire import codec
from callboard.remote.wire.codec import Codec
from callboard.remote.wire.frames import HEAD, HEAD_SIZE, Buffer, Frame, head

# On CPython 3.11, a look-up in an enumeration costs more than packing a frame.
_ANSWER, _TELL_MANY = MessageKind.ANSWER, MessageKind.TELL_MANY
_OPENING = Struct(HEAD.format + MessageKind.TELL.layout.format[1:])
_ROWS_OPENING = Struct(HEAD.format + MessageKind.TELL_MANY.layout.format[1:])

BEFORE_DATA = _ROWS_OPENING.size
"""The maximum number of bytes of a delivery before its data."""


@dataclass(frozen=True)
class Welcome:
    """The server's description of itself: its entry points, and a client's limits."""

    entries: Sequence[str]
    frame: int
    messages: int
    bytes: int
    idle: float
    shard: str | None
    """Its number among several servers, if it has one."""
    traces: bool = False
    """Whether it takes TRACE."""

    @property
    def longest(self) -> int:
        """The maximum number of bytes of a frame."""
        return min(self.frame, self.bytes)


class Answered(NamedTuple):
    """The answer to the ASK of this sequence number, or to a request of staging."""

    sequence: int
    value: Any


class Failed(NamedTuple):
    """The delivery of this sequence number raised an exception of type `kind`."""

    sequence: int
    kind: str
    text: str
    was_asked: bool


class Credit(NamedTuple):
    """The number of messages that were handled since the last one."""

    messages: int


class Pong(NamedTuple):
    """The answer to a ping: the server's health."""

    nonce: int
    health: dict[str, Any]


ClientEvent = Welcome | Answered | Failed | Credit | Pong | Goodbye


class ClientSide:
    """A client's side of the protocol. Callers in several threads need a lock."""

    def __init__(self, encoding: Codec, secret: bytes, shard: Shard | None = None) -> None:
        """With a `shard` the server must be that one."""
        self._codec = encoding
        self._secret = secret
        self._shard = shard
        self.server: Welcome | None = None
        self.account = Account(0, 0)
        self._longest = 0
        self.asked: dict[int, int] = {}
        """The messages that wait for an answer: sequence numbers, and sizes."""
        self.has_said_goodbye = False
        """Whether either side has said goodbye: nothing more may be delivered."""
        self._deliveries = 0
        self._told = (0, 0)  # messages and bytes of TELL, TELL_MANY and BATCH
        self._credited = (0, 0)  # of those, what was handled

    @property
    def is_open(self) -> bool:
        """Whether deliveries may be sent, as far as there is credit."""
        return self.server is not None and not self.has_said_goodbye

    @property
    def unacknowledged(self) -> int:
        """How many messages were told, and are not known to be handled."""
        return self._told[0] - self._credited[0]

    def hello(self) -> bytes:
        """Return the first frame."""
        return MessageKind.HELLO.frame(MAGIC, VERSION, codec.VERSION, rest=self._secret)

    def has_room(self, messages: int, size: int) -> bool:
        """Tell whether there is credit for a delivery with `size` bytes of data."""
        size += BEFORE_DATA
        return size <= self._longest and self.account.has_room(messages, size)

    def deliver(
        self, kind: MessageKind, entry: int, parts: Sequence[Buffer], size: int, messages: int = 1
    ) -> tuple[int, tuple[Buffer, ...]]:
        """Return the sequence number, and the parts of the frame. Raises Rejected beyond credit."""
        if kind is _TELL_MANY:
            opening = _ROWS_OPENING.pack(size + _ROWS_OPENING.size - 4, kind, entry, messages)
        else:
            opening = _OPENING.pack(size + _OPENING.size - 4, kind, entry)
        return self._send(kind, opening, parts, size + len(opening), messages)

    def request(
        self, kind: MessageKind, numbers: Sequence[Any], parts: Sequence[Buffer], size: int
    ) -> tuple[int, tuple[Buffer, ...]]:
        """Return the same of a request, whose body has `size` bytes with the `numbers`."""
        opening = head(kind, size) + kind.pack(*numbers)
        return self._send(kind, opening, parts, HEAD_SIZE + size, int(kind.is_answered))

    def _send(
        self,
        kind: MessageKind,
        opening: bytes,
        parts: Sequence[Buffer],
        size: int,
        messages: int,
    ) -> tuple[int, tuple[Buffer, ...]]:
        self.account.take(messages, size)
        self._deliveries = sequence = self._deliveries + 1
        if kind.is_answered:
            self.asked[sequence] = size
        else:
            self._told = (self._told[0] + messages, self._told[1] + size)
        return sequence, (opening, *parts)

    def ping(self, nonce: int) -> bytes:
        """Return a PING."""
        return MessageKind.PING.frame(nonce)

    def goodbye(self, text: str) -> bytes:
        """Return the goodbye. The server answers what it has, and closes the connection."""
        self.has_said_goodbye = True
        return goodbye_frame(GoodbyeReason.DONE, text)

    def receive(self, received: Frame) -> ClientEvent:
        """Take a frame.

        Raises Rejected if the server should not have sent it, and ConnectionRejected if the server
        is another shard.
        """
        found = (_FIRST if self.server is None else _HANDLERS).get(received.kind)
        if found is None:
            kind = kind_of(received.kind)
            if self.server is None:
                raise Rejected(f"a server must begin with WELCOME, got {kind.name}")
            raise Rejected(f"a server may not send {kind.name} at this point")
        kind, handle = found
        try:
            return handle(self, received.body)
        except (CodecError, LookupError, TypeError, ValueError) as error:
            raise Rejected(f"a {kind.name} cannot be read: {error}") from error

    def _take_goodbye(self, body: Buffer) -> Goodbye:
        self.has_said_goodbye = True
        return read_goodbye(body)

    def _take_answer(self, body: Buffer) -> Answered:
        (sequence,), data = _ANSWER.unpack(body)
        self._settle(sequence)
        return Answered(sequence, self._answer(data))

    def _take_staged(self, body: Buffer) -> Answered:
        (sequence, rows), _ = MessageKind.STAGED.unpack(body)
        self._settle(sequence)
        return Answered(sequence, rows)

    def _take_pong(self, body: Buffer) -> Pong:
        (nonce,), data = MessageKind.PONG.unpack(body)
        return Pong(nonce, dict(self._codec.decode(data)))

    def _enter(self, body: Buffer) -> Welcome:
        said = self._codec.decode(body)
        server = Welcome(
            tuple(map(str, said["entries"])),
            int(said["frame"]),
            int(said["messages"]),
            int(said["bytes"]),
            float(said["idle"]),
            said.get("shard"),
            bool(said.get("traces")),
        )
        if self._shard is not None and server.shard != str(self._shard):
            says = "no shard" if server.shard is None else f"shard {server.shard}"
            raise ConnectionRejected(f"expected shard {self._shard}, got a server that is {says}")
        self.server = server
        self.account = Account(server.messages, server.bytes)
        self._longest = server.frame
        return server

    def _answer(self, data: Buffer) -> Any:
        """Decode an answer. If that fails, it is the ask that fails."""
        try:
            return self._codec.decode(data)
        except CodecError as error:
            return error

    def _credit(self, body: Buffer) -> Credit:
        (messages, size), _ = MessageKind.CREDIT.unpack(body)
        if messages > self._told[0] or size > self._told[1]:
            raise Rejected(f"credit for {messages} messages of {size} bytes; told: {self._told}")
        before, self._credited = self._credited, (messages, size)
        self.account.give_back(messages - before[0], size - before[1])
        return Credit(messages - before[0])

    def _fail(self, body: Buffer) -> Failed:
        (sequence,), data = MessageKind.FAILED.unpack(body)
        kind, text = self._codec.decode(data)
        was_asked = sequence in self.asked
        if was_asked:
            self._settle(sequence)
        elif not 0 < sequence <= self._deliveries:
            raise Rejected(f"a FAILED for delivery {sequence}; there were {self._deliveries}")
        return Failed(sequence, str(kind), str(text), was_asked)

    def _settle(self, sequence: int) -> None:
        size = self.asked.pop(sequence, None)
        if size is None:
            raise Rejected(f"an answer to delivery {sequence}, which is not an open ask")
        self.account.give_back(1, size)


_Handler = Callable[[ClientSide, Buffer], ClientEvent]


# The handlers of the first message, and of those after the WELCOME.
_FIRST: dict[int, tuple[MessageKind, _Handler]] = by_number(
    {
        MessageKind.WELCOME: ClientSide._enter,
        MessageKind.GOODBYE: ClientSide._take_goodbye,
    }
)
_HANDLERS: dict[int, tuple[MessageKind, _Handler]] = by_number(
    {
        _ANSWER: ClientSide._take_answer,
        MessageKind.FAILED: ClientSide._fail,
        MessageKind.STAGED: ClientSide._take_staged,
        MessageKind.CREDIT: ClientSide._credit,
        MessageKind.PONG: ClientSide._take_pong,
        MessageKind.GOODBYE: ClientSide._take_goodbye,
    }
)
