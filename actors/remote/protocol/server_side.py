"""The server's side of one connection, without input and output: frames in, frames out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Any, NamedTuple, cast

from callboard.core import checks
from callboard.core.errors import ConfigError
from callboard.core.text import sendable
from callboard.remote.errors import CodecError
from callboard.remote.protocol import kinds
from callboard.remote.protocol.kinds import (
    ANSWERED,
    DELIVERIES,
    PUBLISHING,
    STAGING,
    Account,
    Farewell,
    MessageKind,
    Parting,
    Rejected,
    by_number,
    farewell,
    kind_of,
    parting,
    unpack,
)
from callboard.remote.protocol.published_rows import READERS, PublishingContent
from callboard.remote.protocol.staged_rows import Begin, StagingContent, content, staged_body
from callboard.remote.wire import codec
from callboard.remote.wire.codec import Codec
from callboard.remote.wire.frames import HEAD_SIZE, MOST, Buffer, Frame, frame

# On CPython 3.11 to look into an enumeration costs more than to unpack a frame.
_ASK, _TELL_MANY = MessageKind.ASK, MessageKind.TELL_MANY
_LONGEST_TEXT = 10_000  # bytes of an exception's text


@dataclass(frozen=True)
class ServerLimits:
    """A server's limits for each client, and for all of them. Times are in seconds."""

    frame: int = 16 * 2**20
    """The longest frame, in bytes."""
    values: int = 2**20
    """The most values that a frame may hold; a container counts as four."""
    messages: int = 16_384
    """The most messages of a client that wait or are in work."""
    bytes: int = 64 * 2**20
    """The most bytes of frames of a client that wait or are in work."""
    output: int = 64 * 2**20
    """The most bytes that wait for a client to read them."""
    connections: int = 256
    handshakes: int = 32
    """The most connections whose clients have not said who they are."""
    handshake_time: float = 5.0
    idle_time: float = 60.0
    """How long a client may be silent; clients that have nothing to say ping."""

    def __post_init__(self) -> None:
        for name in ("values", "messages", "connections", "handshakes"):
            checks.whole(name, getattr(self, name), error=ConfigError)
        # Whatever it is, a frame must pass at some time, and the WELCOME at once.
        checks.whole("frame", self.frame, 4096, MOST, error=ConfigError)
        for name in ("bytes", "output"):
            checks.whole(name, getattr(self, name), error=ConfigError)
            if getattr(self, name) < self.frame:
                raise ConfigError(
                    f"the limit of {name}, {getattr(self, name)}, is less than that of a frame, "
                    f"{self.frame}"
                )
        for name in ("handshake_time", "idle_time"):
            checks.seconds(name, getattr(self, name), zero=False, error=ConfigError)


class Delivery(NamedTuple):
    """A message of a client, or many, that are for an entry point."""

    kind: MessageKind
    sequence: int
    entry: int
    messages: int
    body: Buffer
    size: int
    """In bytes, as credit is counted."""
    trace: str | None = None
    """The W3C `traceparent` of the span that sent it."""


class StagingRequest(NamedTuple):
    """A client's request about staged or published rows. DATA counts with its bytes alone."""

    kind: MessageKind
    sequence: int
    messages: int
    size: int
    content: StagingContent | PublishingContent


class Ping(NamedTuple):
    """The client wants a PONG with this number, and with the server's health."""

    nonce: int


class Greeting(NamedTuple):
    """The client has said who it is, and is welcome."""


ServerEvent = Delivery | StagingRequest | Ping | Parting | Greeting


def _nothing_more() -> bool:
    return False


class ServerSide:
    """A server's side of the protocol, for one client. A user in several threads needs a lock."""

    def __init__(
        self,
        encoding: Codec,
        limits: ServerLimits,
        entries: Sequence[str],
        is_secret: Callable[[bytes], bool],
    ) -> None:
        self._codec = encoding
        self._limits = limits
        self._entries = entries
        self._is_secret = is_secret
        self.account = Account(limits.messages, limits.bytes)
        self.is_greeted = False
        self.has_parted = False
        """Whether this side has said goodbye; what comes after that is not taken."""
        self.deliveries = 0
        self._trace: str | None = None  # of the delivery that comes next
        self._told = 0  # bytes of what is told, DATA as well, that are on their way
        self._handled = (0, 0)  # of that, the messages and bytes that were handled
        self._credited = (0, 0)  # what the client was told of that

    def receive(self, received: Frame) -> ServerEvent | None:
        """Take a frame. Returns None for a TRACE, and for a delivery after this side's goodbye.

        Raises Rejected for what ends the connection.
        """
        if not self.is_greeted:
            return self._greet(kind_of(received.kind), received.body)
        handler = _HANDLERS.get(received.kind)
        if handler is None:
            raise Rejected(f"a server gets no {kind_of(received.kind).name} at this point")
        kind, layout, handle = handler
        return handle(self, kind, layout, received.body)

    def _note_trace(self, kind: MessageKind, layout: Struct, body: Buffer) -> None:
        if len(body) > kinds.LONGEST_TRACE:
            raise Rejected(f"a TRACE of {len(body)} bytes is longer than {kinds.LONGEST_TRACE}")
        self._trace = bytes(body).decode("ascii", errors="replace")

    def _greet(self, kind: MessageKind, body: Buffer) -> Greeting:
        if kind is not MessageKind.HELLO:
            raise Rejected(f"a connection begins with HELLO, not {kind.name}")
        (magic, version, encoding), secret = unpack(kinds.HELLO, body, kind)
        if magic != kinds.MAGIC:
            raise Rejected("this is no client of callboard")
        if (version, encoding) != (kinds.VERSION, codec.VERSION):
            raise Rejected(
                f"the client speaks version {version} with encoding {encoding}, the server version "
                f"{kinds.VERSION} with encoding {codec.VERSION}",
                Farewell.VERSION,
            )
        if not self._is_secret(bytes(secret)):
            why = "the secret is not the server's" if secret else "the server needs a secret"
            raise Rejected(why, Farewell.SECRET)
        self.is_greeted = True
        return Greeting()

    def _answer_ping(self, kind: MessageKind, layout: Struct, body: Buffer) -> Ping:
        (nonce,), _ = unpack(layout, body, kind)
        return Ping(nonce)

    def _part(self, kind: MessageKind, layout: Struct, body: Buffer) -> Parting:
        return parting(body)

    def _deliver(self, kind: MessageKind, layout: Struct, body: Buffer) -> Delivery | None:
        messages, size = 1, HEAD_SIZE + len(body)
        if kind is _TELL_MANY:
            (entry, messages), body = unpack(layout, body, kind)
        else:
            (entry,), body = unpack(layout, body, kind)
        self._check(entry)
        trace, self._trace = self._trace, None
        if self.has_parted:
            return None
        self.account.take(messages, size)
        self.deliveries += 1
        if kind is not _ASK:
            self._told += size
        return Delivery(kind, self.deliveries, entry, messages, body, size, trace)

    def _stage(self, kind: MessageKind, layout: Struct, body: Buffer) -> StagingRequest | None:
        said = content(kind, body, self._codec)
        if isinstance(said, Begin):
            self._check(said.entry)
        return self._request(kind, body, said)

    def _publish(self, kind: MessageKind, layout: Struct, body: Buffer) -> StagingRequest | None:
        said = READERS[kind](body)
        self._check(said.entry)
        return self._request(kind, body, said)

    def _request(
        self, kind: MessageKind, body: Buffer, said: StagingContent | PublishingContent
    ) -> StagingRequest | None:
        if self.has_parted:
            return None
        messages, size = int(kind in ANSWERED), HEAD_SIZE + len(body)
        self.account.take(messages, size)
        self.deliveries += 1
        if not messages:
            self._told += size
        return StagingRequest(kind, self.deliveries, messages, size, said)

    def _check(self, entry: int) -> None:
        if entry >= len(self._entries):
            raise Rejected(f"no entry point {entry}: there are {len(self._entries)}")

    def welcome(self, about: dict[str, Any]) -> bytes:
        """Return the answer to HELLO: the entry points, the limits, and what else is to be said."""
        limits = self._limits
        return self._frame(
            MessageKind.WELCOME,
            about
            | {
                "entries": list(self._entries),
                "frame": limits.frame,
                "messages": limits.messages,
                "bytes": limits.bytes,
                "idle": limits.idle_time,
                "traces": True,
            },
        )

    def answer(self, delivery: Delivery | StagingRequest, data: bytes) -> bytes:
        """Return the answer to what wants one, an encoded value, which gives its credit back.

        Raises CodecError for one that is too long.
        """
        if HEAD_SIZE + kinds.SEQUENCE.size + len(data) > self._limits.frame:
            raise CodecError(f"an answer of {len(data)} bytes is longer than a frame may be")
        self.account.give_back(1, delivery.size)
        return frame(MessageKind.ANSWER, kinds.SEQUENCE.pack(delivery.sequence), data)

    def staged(self, request: StagingRequest, rows: int) -> bytes:
        """Return the answer to an END, which gives its credit back."""
        self.account.give_back(1, request.size)
        return frame(MessageKind.STAGED, staged_body(request.sequence, rows))

    def failed(self, delivery: Delivery | StagingRequest, kind: str, text: str) -> bytes:
        """Return that a delivery failed; if it wants an answer, this gives the credit back.

        Texts that are too long for a frame, or for a reader, are cut.
        """
        if delivery.kind in ANSWERED:
            self.account.give_back(1, delivery.size)
        longest = min(_LONGEST_TEXT, self._limits.frame // 2)  # of both, which share a frame
        kind = sendable(kind, longest // 2)
        data = self._codec.encode([kind, sendable(text, longest - len(kind.encode()))])
        return frame(MessageKind.FAILED, kinds.SEQUENCE.pack(delivery.sequence), data)

    @property
    def has_asked(self) -> bool:
        """Whether something is on its way that wants an answer."""
        return self.account.bytes > self._told

    def handled(
        self, delivery: Delivery | StagingRequest, has_more: Callable[[], bool] = _nothing_more
    ) -> bytes:
        """Note that what was told was handled. Returns the CREDIT, or nothing while it can wait:
        others are on their way, or will be, if `has_more()`; then `owed()` is called some time.
        """
        messages, size = self._handled
        self.account.give_back(delivery.messages, delivery.size)
        self._handled = messages, size = messages + delivery.messages, size + delivery.size
        self._told -= delivery.size
        can_wait = (
            messages - self._credited[0] < self._limits.messages // 4
            and size - self._credited[1] < self._limits.bytes // 4
        )
        if can_wait and (self._told > 0 or (not self.has_parted and has_more())):
            return b""
        return self._credit()

    def owed(self) -> bytes:
        """Return the CREDIT that has waited though nothing else is on its way, or nothing."""
        return b"" if self._told or self._credited == self._handled else self._credit()

    def _credit(self) -> bytes:
        self._credited = self._handled
        return frame(MessageKind.CREDIT, kinds.CREDIT.pack(*self._handled))

    def pong(self, ping: Ping, health: dict[str, Any]) -> bytes:
        """Return the answer to a PING."""
        data = self._codec.encode(health)
        return frame(MessageKind.PONG, kinds.NONCE.pack(ping.nonce), data)

    def goodbye(self, reason: Farewell, text: str) -> bytes:
        """Return the goodbye. Deliveries that come after it are not taken."""
        self.has_parted = True
        return farewell(reason, text)

    def _frame(self, kind: MessageKind, value: Any) -> bytes:
        return frame(kind, self._codec.encode(value))


_Handler = Callable[[ServerSide, MessageKind, Struct, Buffer], ServerEvent | None]

# The handlers of a client's messages, by kind.
_HANDLERS = by_number(
    {
        MessageKind.TRACE: cast(_Handler, ServerSide._note_trace),
        MessageKind.PING: ServerSide._answer_ping,
        MessageKind.GOODBYE: ServerSide._part,
        **dict.fromkeys(DELIVERIES, ServerSide._deliver),
        **dict.fromkeys(STAGING, ServerSide._stage),
        **dict.fromkeys(PUBLISHING, ServerSide._publish),
    }
)
