"""The client's side of one connection, without input and output: frames in, frames out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Any, NamedTuple, cast

from callboard.remote.errors import CodecError, ConnectionRejected
from callboard.remote.protocol import kinds
from callboard.remote.protocol.kinds import (
    ANSWERED,
    Account,
    MessageKind,
    Parting,
    Rejected,
    by_number,
    farewell,
    kind_of,
    parting,
    unpack,
)
from callboard.remote.protocol.shard import Shard
from callboard.remote.protocol.staged_rows import staged_rows
from callboard.remote.wire import codec
from callboard.remote.wire.codec import Codec
from callboard.remote.wire.frames import HEAD, Buffer, Frame, frame, head

# On CPython 3.11 to look into an enumeration costs more than to pack a frame.
_ANSWER, _TELL_MANY = MessageKind.ANSWER, MessageKind.TELL_MANY
_OPENING = Struct(HEAD.format + kinds.ENTRY.format[1:])
_ROWS_OPENING = Struct(HEAD.format + kinds.ENTRY_ROWS.format[1:])

BEFORE_DATA = _ROWS_OPENING.size
"""How many bytes of a delivery precede its data, at most."""


@dataclass(frozen=True)
class Welcome:
    """The server's description of itself: its entry points, and a client's limits."""

    entries: Sequence[str]
    frame: int
    messages: int
    bytes: int
    idle: float
    shard: str | None
    """Which of several servers it is, as its user has said."""
    traces: bool = False
    """Whether it takes TRACE."""

    @property
    def longest(self) -> int:
        """How many bytes a frame may have."""
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
    """So many messages more were handled."""

    messages: int


class Pong(NamedTuple):
    """The answer to a ping: how the server is."""

    nonce: int
    health: dict[str, Any]


ClientEvent = Welcome | Answered | Failed | Credit | Pong | Parting


class ClientSide:
    """A client's side of the protocol. A user in several threads needs a lock."""

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
        self.has_parted = False
        """Whether either side has said goodbye: nothing more may be delivered."""
        self._deliveries = 0
        self._told = (0, 0)  # messages and bytes of TELL, TELL_MANY and BATCH
        self._credited = (0, 0)  # of those, what was handled

    @property
    def is_open(self) -> bool:
        """Whether deliveries may be sent, as far as there is credit."""
        return self.server is not None and not self.has_parted

    @property
    def unacknowledged(self) -> int:
        """How many messages were told, and are not known to be handled."""
        return self._told[0] - self._credited[0]

    def hello(self) -> bytes:
        """Return the first frame."""
        opening = kinds.HELLO.pack(kinds.MAGIC, kinds.VERSION, codec.VERSION)
        return frame(MessageKind.HELLO, opening, self._secret)

    def has_room(self, messages: int, size: int) -> bool:
        """Tell whether there is credit for a delivery, with so many bytes of data."""
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
        self, kind: MessageKind, entry: int | None, parts: Sequence[Buffer], size: int
    ) -> tuple[int, tuple[Buffer, ...]]:
        """Return the same of what is said of staged rows, for an entry point or none."""
        opening = b"" if entry is None else kinds.ENTRY.pack(entry)
        opening = head(kind, len(opening) + size) + opening
        return self._send(kind, opening, parts, size + len(opening), int(kind in ANSWERED))

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
        if kind in ANSWERED:
            self.asked[sequence] = size
        else:
            self._told = (self._told[0] + messages, self._told[1] + size)
        return sequence, (opening, *parts)

    def ping(self, nonce: int) -> bytes:
        """Return a PING."""
        return frame(MessageKind.PING, kinds.NONCE.pack(nonce))

    def goodbye(self, text: str) -> bytes:
        """Return the goodbye. The server answers what it has, and closes the connection."""
        self.has_parted = True
        return farewell(kinds.Farewell.DONE, text)

    def receive(self, received: Frame) -> ClientEvent:
        """Take a frame. Raises Rejected for what the server should not have sent, and
        ConnectionRejected for a server that is another shard.
        """
        found = (_FIRST if self.server is None else _HANDLERS).get(received.kind)
        if found is None:
            kind = kind_of(received.kind)
            if self.server is None:
                raise Rejected(f"a server begins with WELCOME, not {kind.name}")
            raise Rejected(f"a client gets no {kind.name} at this point")
        kind, layout, handle = found
        try:
            return handle(self, layout, received.body)
        except (CodecError, LookupError, TypeError, ValueError) as error:
            raise Rejected(f"a {kind.name} cannot be read: {error}") from error

    def _part(self, layout: Struct, body: Buffer) -> Parting:
        self.has_parted = True
        return parting(body)

    def _take_answer(self, layout: Struct, body: Buffer) -> Answered:
        (sequence,), data = unpack(layout, body, _ANSWER)
        self._settle(sequence)
        return Answered(sequence, self._answer(data))

    def _take_staged(self, layout: Struct, body: Buffer) -> Answered:
        sequence, rows = staged_rows(body)
        self._settle(sequence)
        return Answered(sequence, rows)

    def _take_pong(self, layout: Struct, body: Buffer) -> Pong:
        (nonce,), data = unpack(layout, body, MessageKind.PONG)
        return Pong(nonce, dict(self._codec.decode(data)))

    def _enter(self, layout: Struct, body: Buffer) -> Welcome:
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
            raise ConnectionRejected(f"the server is {says}, and shard {self._shard} is wanted")
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

    def _credit(self, layout: Struct, body: Buffer) -> Credit:
        (messages, size), _ = unpack(layout, body, MessageKind.CREDIT)
        if messages > self._told[0] or size > self._told[1]:
            raise Rejected(f"credit for {messages} messages of {size} bytes; told: {self._told}")
        before, self._credited = self._credited, (messages, size)
        self.account.give_back(messages - before[0], size - before[1])
        return Credit(messages - before[0])

    def _fail(self, layout: Struct, body: Buffer) -> Failed:
        (sequence,), data = unpack(layout, body, MessageKind.FAILED)
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
            raise Rejected(f"an answer to delivery {sequence}, which is no open ask")
        self.account.give_back(1, size)


_Handler = Callable[[ClientSide, Struct, Buffer], ClientEvent]

# The handlers of a server's messages, by kind: of the first one, and of those after the WELCOME.
_FIRST = by_number(
    {
        MessageKind.WELCOME: cast(_Handler, ClientSide._enter),
        MessageKind.GOODBYE: ClientSide._part,
    }
)
_HANDLERS = by_number(
    {
        _ANSWER: cast(_Handler, ClientSide._take_answer),
        MessageKind.FAILED: ClientSide._fail,
        MessageKind.STAGED: ClientSide._take_staged,
        MessageKind.CREDIT: ClientSide._credit,
        MessageKind.PONG: ClientSide._take_pong,
        MessageKind.GOODBYE: ClientSide._part,
    }
)
