"""The messages of client and server: their kinds, and the content of each body.

Numbers are in network order. "A value" is as `codec` encodes it, text is UTF-8. Messages of the
groups "delivery", "staging" and "publishing" are deliveries. Each has a sequence number: its place
among the deliveries of its connection, from 1 on. `docs/serve.md` has the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from struct import Struct
from typing import Any, Literal, NamedTuple, TypeVar

from callboard.remote.wire.frames import Buffer, ProtocolError, frame

H = TypeVar("H")

VERSION = 1
MAGIC = b"callbrd\n"


class MessageKind(IntEnum):
    """The kinds of version 1: number, group, layout, and whether an answer gives the credit back.

    The layout is that of the numbers at the beginning of a body. An "H" is an entry point's place
    in WELCOME. CREDIT gives back the credit of deliveries that are not answered.
    """

    group: Literal["connection", "delivery", "staging", "publishing", "answer"]
    layout: Struct
    is_answered: bool

    def __new__(
        cls, number: int, group: Any, layout: str = "", is_answered: bool = False
    ) -> MessageKind:
        """Make a kind, which is its number."""
        kind = int.__new__(cls, number)
        kind._value_ = number
        kind.group, kind.layout, kind.is_answered = group, Struct(f"!{layout}"), is_answered
        return kind

    HELLO = 1, "connection", "8sHH"  # magic, version of the protocol, of the codec; then the secret
    WELCOME = 2, "connection"  # then a value: the server's description of itself
    GOODBYE = 3, "connection", "B"  # a GoodbyeReason; then a text
    PING = 4, "connection", "Q"  # any number
    PONG = 5, "connection", "Q"  # the same number; then a value: the server's health
    CREDIT = 6, "connection", "QQ"  # messages and bytes, of what is not answered, handled so far
    TRACE = 7, "connection"  # then a W3C traceparent, for the next delivery
    TELL = 16, "delivery", "H"  # the entry; then a value
    TELL_MANY = 17, "delivery", "HI"  # the entry, the number of rows; then rows
    ASK = 18, "delivery", "H", True  # the entry; then a value
    BATCH = 19, "delivery", "H"  # the entry; then a stream of Arrow's IPC format
    ANSWER = 24, "answer", "Q"  # the delivery's sequence number; then a value
    FAILED = 25, "answer", "Q"  # the same; then a list of two texts
    BEGIN = 32, "staging", "HIIQq", True  # entry, upload, partition, attempt, batch; then the job
    DATA = 33, "staging", "IIBI"  # upload, sequence, Layout, rows; then the rows
    END = 34, "staging", "IQI", True  # upload, rows, checksum
    STAGED = 35, "answer", "QQ"  # sequence number of END, rows
    COMMIT = 36, "staging", "q", True  # batch; then a value: the job, and a list of winners
    ABORT = 37, "staging", "q", True  # batch; then the job
    PUBLISHED = 40, "publishing", "H", True  # the entry
    READ = 41, "publishing", "HQ", True  # the entry, a row
    RELEASE = 42, "publishing", "HQ", True  # the same

    def pack(self, *numbers: Any) -> bytes:
        """Return the beginning of a body."""
        return self.layout.pack(*numbers)

    def frame(self, *numbers: Any, rest: bytes = b"") -> bytes:
        """Return a frame of this kind. Without numbers, `rest` is the whole body."""
        return frame(self, self.pack(*numbers) if numbers else b"", rest)

    def unpack(self, body: Buffer) -> tuple[tuple[Any, ...], Buffer]:
        """Return the numbers at the beginning of a body, and the rest of it. Raises Rejected."""
        size = self.layout.size
        if len(body) < size:
            raise Rejected(f"a {self.name} of {len(body)} bytes is shorter than {size}")
        return self.layout.unpack_from(body), body[size:]


_KINDS = {int(kind): kind for kind in MessageKind}

LONGEST_SECRET = 1024
LONGEST_TRACE = 512  # bytes of a TRACE; a W3C traceparent has 55
# No frame may be longer before the client is known.
HELLO_LIMIT = 4 + 1 + MessageKind.HELLO.layout.size + LONGEST_SECRET


class GoodbyeReason(IntEnum):
    """Why a connection ends."""

    DONE = 0
    DRAINING = 1
    BUSY = 2
    IDLE = 3
    SECRET = 16
    VERSION = 17
    PROTOCOL = 18

    @property
    def is_final(self) -> bool:
        """Whether another attempt would end in the same way."""
        return self >= GoodbyeReason.SECRET


class Goodbye(NamedTuple):
    """The other side's announcement that it ends the connection."""

    reason: GoodbyeReason
    text: str


class Rejected(ProtocolError):
    """A frame of the other side is rejected, which ends the connection, with this reason."""

    def __init__(self, text: str, reason: GoodbyeReason = GoodbyeReason.PROTOCOL) -> None:
        super().__init__(text)
        self.reason = reason


def kind_of(number: int) -> MessageKind:
    """Return the kind with this number. Raises Rejected."""
    kind = _KINDS.get(number)
    if kind is None:
        raise Rejected(f"version {VERSION} has no message of kind {number}")
    return kind


def by_number(handlers: Mapping[MessageKind, H]) -> dict[int, tuple[MessageKind, H]]:
    """Return the handlers of messages by the numbers of their kinds, with the kinds."""
    return {int(kind): (kind, handler) for kind, handler in handlers.items()}


def goodbye_frame(reason: GoodbyeReason, text: str) -> bytes:
    """Return a GOODBYE."""
    return MessageKind.GOODBYE.frame(reason, rest=text.encode(errors="replace")[:1_000])


def read_goodbye(body: Buffer) -> Goodbye:
    """Read a GOODBYE. Raises Rejected."""
    (code,), text = MessageKind.GOODBYE.unpack(body)
    try:
        reason = GoodbyeReason(code)
    except ValueError:
        raise Rejected(f"GOODBYE has an unknown reason: {code}") from None
    return Goodbye(reason, bytes(text[:1_000]).decode(errors="replace"))


class Account:
    """Credit: the messages and bytes on their way, and their maximum. Each side keeps one."""

    def __init__(self, max_messages: int, max_bytes: int) -> None:
        self.max_messages = max_messages
        self.max_bytes = max_bytes
        self.messages = 0
        self.bytes = 0

    def has_room(self, messages: int, size: int) -> bool:
        """Tell whether this delivery fits into the credit."""
        return self.messages + messages <= self.max_messages and self.bytes + size <= self.max_bytes

    def take(self, messages: int, size: int) -> None:
        """Note a delivery that is sent. Raises Rejected beyond the credit."""
        if not self.has_room(messages, size):
            raise Rejected(
                f"{messages} messages of {size} bytes are beyond the credit: {self.messages} of "
                f"{self.max_messages} messages and {self.bytes} of {self.max_bytes} bytes are "
                "on their way"
            )
        self.messages += messages
        self.bytes += size

    def give_back(self, messages: int, size: int) -> None:
        """Note handled deliveries. Raises Rejected if they are more than are on their way."""
        if not (0 <= messages <= self.messages and 0 <= size <= self.bytes):
            raise Rejected(
                f"credit for {messages} messages of {size} bytes, but {self.messages} of "
                f"{self.bytes} bytes are on their way"
            )
        self.messages -= messages
        self.bytes -= size
