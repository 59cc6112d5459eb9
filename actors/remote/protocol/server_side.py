"""The server's side of one connection, without I/O: frames in, frames out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from callboard.core import checks
from callboard.core.errors import ConfigError
from callboard.core.text import sendable
from callboard.remote.errors import CodecError
from callboard.remote.protocol.kinds import (
    LONGEST_TRACE,
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
from callboard.remote.protocol.requests import RequestContent, read_request
from callboard.remote.wire import codec
from callboard.remote.wire.codec import Codec
from callboard.remote.wire.frames import HEAD_SIZE, MOST, Buffer, Frame

# On CPython 3.11, a look-up in an enumeration costs more than unpacking a frame.
_ASK, _TELL_MANY = MessageKind.ASK, MessageKind.TELL_MANY
_LONGEST_TEXT = 10_000  # bytes of an exception's text


@dataclass(frozen=True)
class ServerLimits:
    """A server's limits for each client, and for all of them. Times are in seconds."""

    frame: int = 16 * 2**20
    """The longest frame, in bytes."""
    values: int = 2**20
    """The maximum number of values in a frame; a container counts as four."""
    messages: int = 16_384
    """The maximum number of a client's messages that wait or are being handled."""
    bytes: int = 64 * 2**20
    """The maximum size of a client's frames that wait or are being handled, in bytes."""
    output: int = 64 * 2**20
    """The maximum number of bytes that wait for a client to read them."""
    connections: int = 256
    handshakes: int = 32
    """The maximum number of connections in a handshake."""
    handshake_time: float = 5.0
    idle_time: float = 60.0
    """How long a client may be silent; idle clients send pings."""

    def __post_init__(self) -> None:
        for name in ("values", "messages", "connections", "handshakes"):
            checks.whole(name, getattr(self, name), error=ConfigError)
        # Every frame must fit into these some time, and the WELCOME at once.
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
    """One or several messages of a client for an entry point."""

    kind: MessageKind
    sequence: int
    entry: int
    messages: int
    body: Buffer
    size: int
    """In bytes, as credit is counted."""
    trace: str | None = None
    """The W3C `traceparent` of the span that sent it."""


class ClientRequest(NamedTuple):
    """A client's request about staged or published rows. DATA counts with its bytes alone."""

    kind: MessageKind
    sequence: int
    messages: int
    size: int
    content: RequestContent


class Ping(NamedTuple):
    """A client's request for a PONG with this number and the server's health."""

    nonce: int


class Greeting(NamedTuple):
    """The client has passed the handshake."""


ServerEvent = Delivery | ClientRequest | Ping | Goodbye | Greeting


def _nothing_more() -> bool:
    return False


class ServerSide:
    """A server's side of the protocol, for one client. Callers in several threads need a lock."""

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
        self.has_said_goodbye = False
        """Whether this side has said goodbye; what comes after that is not taken."""
        self.deliveries = 0
        self._trace: str | None = None  # of the delivery that comes next
        self._told = 0  # bytes of what is told, DATA as well, that are on their way
        self._handled = (0, 0)  # of that, the messages and bytes that were handled
        self._credited = (0, 0)  # what the client was told of that

    def receive(self, received: Frame) -> ServerEvent | None:
        """Take a frame. Returns None for a TRACE, and for a delivery after this side's goodbye.

        Raises Rejected for an error that ends the connection.
        """
        if not self.is_greeted:
            return self._greet(kind_of(received.kind), received.body)
        handler = _HANDLERS.get(received.kind)
        if handler is None:
            raise Rejected(f"a client may not send {kind_of(received.kind).name} at this point")
        kind, handle = handler
        return handle(self, kind, received.body)

    def _note_trace(self, kind: MessageKind, body: Buffer) -> None:
        if len(body) > LONGEST_TRACE:
            raise Rejected(f"a TRACE of {len(body)} bytes is longer than {LONGEST_TRACE}")
        self._trace = bytes(body).decode("ascii", errors="replace")

    def _greet(self, kind: MessageKind, body: Buffer) -> Greeting:
        if kind is not MessageKind.HELLO:
            raise Rejected(f"a connection must begin with HELLO, got {kind.name}")
        (magic, version, encoding), secret = kind.unpack(body)
        if magic != MAGIC:
            raise Rejected("the peer is not a client of callboard")
        if (version, encoding) != (VERSION, codec.VERSION):
            raise Rejected(
                f"the client speaks version {version} with encoding {encoding}, the server version "
                f"{VERSION} with encoding {codec.VERSION}",
                GoodbyeReason.VERSION,
            )
        if not self._is_secret(bytes(secret)):
            why = "the secret is not the server's" if secret else "the server needs a secret"
            raise Rejected(why, GoodbyeReason.SECRET)
        self.is_greeted = True
        return Greeting()

    def _answer_ping(self, kind: MessageKind, body: Buffer) -> Ping:
        (nonce,), _ = kind.unpack(body)
        return Ping(nonce)

    def _take_goodbye(self, kind: MessageKind, body: Buffer) -> Goodbye:
        return read_goodbye(body)

    def _deliver(self, kind: MessageKind, body: Buffer) -> Delivery | None:
        messages, size = 1, HEAD_SIZE + len(body)
        if kind is _TELL_MANY:
            (entry, messages), body = kind.unpack(body)
        else:
            (entry,), body = kind.unpack(body)
        self._check(entry)
        trace, self._trace = self._trace, None
        if self.has_said_goodbye:
            return None
        self.account.take(messages, size)
        self.deliveries += 1
        if kind is not _ASK:
            self._told += size
        return Delivery(kind, self.deliveries, entry, messages, body, size, trace)

    def _request(self, kind: MessageKind, body: Buffer) -> ClientRequest | None:
        content = read_request(kind, body, self._codec)
        entry = getattr(content, "entry", None)
        if entry is not None:
            self._check(entry)
        if self.has_said_goodbye:
            return None
        messages, size = int(kind.is_answered), HEAD_SIZE + len(body)
        self.account.take(messages, size)
        self.deliveries += 1
        if not messages:
            self._told += size
        return ClientRequest(kind, self.deliveries, messages, size, content)

    def _check(self, entry: int) -> None:
        if entry >= len(self._entries):
            raise Rejected(f"no entry point {entry}: there are {len(self._entries)}")

    def welcome(self, about: dict[str, Any]) -> bytes:
        """Return the answer to HELLO: the entry points, the limits, and `about`."""
        limits = self._limits
        description = about | {
            "entries": list(self._entries),
            "frame": limits.frame,
            "messages": limits.messages,
            "bytes": limits.bytes,
            "idle": limits.idle_time,
            "traces": True,
        }
        return MessageKind.WELCOME.frame(rest=self._codec.encode(description))

    def answer(self, delivery: Delivery | ClientRequest, data: bytes) -> bytes:
        """Return an answer, an encoded value, which gives the delivery's credit back.

        Raises CodecError for a value that is too long.
        """
        if HEAD_SIZE + MessageKind.ANSWER.layout.size + len(data) > self._limits.frame:
            raise CodecError(f"an answer of {len(data)} bytes does not fit into a frame")
        self.account.give_back(1, delivery.size)
        return MessageKind.ANSWER.frame(delivery.sequence, rest=data)

    def staged(self, request: ClientRequest, rows: int) -> bytes:
        """Return the answer to an END, which gives its credit back."""
        self.account.give_back(1, request.size)
        return MessageKind.STAGED.frame(request.sequence, rows)

    def failed(self, delivery: Delivery | ClientRequest, kind: str, text: str) -> bytes:
        """Return the failure of a delivery, which gives the credit of an ask or a request back.

        Texts that are too long for a frame, or for a reader, are cut.
        """
        if delivery.kind.is_answered:
            self.account.give_back(1, delivery.size)
        longest = min(_LONGEST_TEXT, self._limits.frame // 2)  # of both, which share a frame
        kind = sendable(kind, longest // 2)
        data = self._codec.encode([kind, sendable(text, longest - len(kind.encode()))])
        return MessageKind.FAILED.frame(delivery.sequence, rest=data)

    @property
    def has_asked(self) -> bool:
        """Whether an ask or a request is on its way."""
        return self.account.bytes > self._told

    def handled(
        self, delivery: Delivery | ClientRequest, has_more: Callable[[], bool] = _nothing_more
    ) -> bytes:
        """Note that a told delivery was handled. Returns the CREDIT, or nothing while it can wait.

        It can wait while others are on their way, or will be, if `has_more()`. Then a call of
        `deferred_credit()` follows.
        """
        messages, size = self._handled
        self.account.give_back(delivery.messages, delivery.size)
        self._handled = messages, size = messages + delivery.messages, size + delivery.size
        self._told -= delivery.size
        can_wait = (
            messages - self._credited[0] < self._limits.messages // 4
            and size - self._credited[1] < self._limits.bytes // 4
        )
        if can_wait and (self._told > 0 or (not self.has_said_goodbye and has_more())):
            return b""
        return self._credit()

    def deferred_credit(self) -> bytes:
        """Return the CREDIT that has waited if nothing else is on its way, or nothing."""
        return b"" if self._told or self._credited == self._handled else self._credit()

    def _credit(self) -> bytes:
        self._credited = self._handled
        return MessageKind.CREDIT.frame(*self._handled)

    def pong(self, ping: Ping, health: dict[str, Any]) -> bytes:
        """Return the answer to a PING."""
        data = self._codec.encode(health)
        return MessageKind.PONG.frame(ping.nonce, rest=data)

    def goodbye(self, reason: GoodbyeReason, text: str) -> bytes:
        """Return the goodbye. Deliveries that come after it are not taken."""
        self.has_said_goodbye = True
        return goodbye_frame(reason, text)


_Handler = Callable[[ServerSide, MessageKind, Buffer], ServerEvent | None]

_OF_GROUPS: dict[str, _Handler] = {
    "delivery": ServerSide._deliver,
    "staging": ServerSide._request,
    "publishing": ServerSide._request,
}
_HANDLERS: dict[int, tuple[MessageKind, _Handler]] = by_number(
    {kind: _OF_GROUPS[kind.group] for kind in MessageKind if kind.group in _OF_GROUPS}
    | {
        MessageKind.TRACE: ServerSide._note_trace,
        MessageKind.PING: ServerSide._answer_ping,
        MessageKind.GOODBYE: ServerSide._take_goodbye,
    }
)
