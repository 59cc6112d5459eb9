"""The messages of client and server: their kinds, and the content of each body.

Numbers are in network order. "A value" is as `codec` encodes it, text is UTF-8. A delivery is a
TELL, TELL_MANY, ASK or BATCH, or one of staging or of published rows. Its sequence number is its
place among the deliveries of its connection, from 1 on. `docs/serve.md` has the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from struct import Struct
from typing import Any, Literal, NamedTuple, TypeVar

from callboard.remote.errors import ProtocolError
from callboard.remote.wire.frames import Buffer, frame

T = TypeVar("T")

VERSION = 1
MAGIC = b"callbrd\n"


class MessageKind(IntEnum):
    """The kinds of version 1."""

    HELLO = 1
    WELCOME = 2
    GOODBYE = 3
    PING = 4
    PONG = 5
    CREDIT = 6
    TRACE = 7
    TELL = 16
    TELL_MANY = 17
    ASK = 18
    BATCH = 19
    ANSWER = 24
    FAILED = 25
    BEGIN = 32
    DATA = 33
    END = 34
    STAGED = 35
    COMMIT = 36
    ABORT = 37
    PUBLISHED = 40
    READ = 41
    RELEASE = 42


HELLO = Struct("!8sHH")  # magic, version of the protocol, of the codec; then the secret
GOODBYE = Struct("!B")  # a Farewell; then a text
NONCE = Struct("!Q")  # of a PING; a PONG has the same one, then a value: the server's health
CREDIT = Struct("!QQ")  # messages and bytes of TELL, TELL_MANY and BATCH handled so far
ENTRY = Struct("!H")  # an entry point's place in WELCOME; then a value, or for a BATCH Arrow's IPC
ENTRY_ROWS = Struct("!HI")  # the same for a TELL_MANY, and how many rows follow
SEQUENCE = Struct("!Q")  # of an ANSWER, then a value; of a FAILED, then a list of two texts
_NONE = Struct("!")


class Traits(NamedTuple):
    """The properties that all messages of a kind share."""

    group: Literal["connection", "delivery", "staging", "publishing", "answer"]
    layout: Struct = _NONE
    """The numbers at the beginning of a body. `staged_rows` and `published_rows` have others."""
    is_answered: bool = False
    """Whether the answer gives its credit back. A delivery that is told is credited by CREDIT."""


TRAITS = {
    MessageKind.HELLO: Traits("connection", HELLO),
    MessageKind.WELCOME: Traits("connection"),
    MessageKind.GOODBYE: Traits("connection", GOODBYE),
    MessageKind.PING: Traits("connection", NONCE),
    MessageKind.PONG: Traits("connection", NONCE),
    MessageKind.CREDIT: Traits("connection", CREDIT),
    MessageKind.TRACE: Traits("connection"),
    MessageKind.TELL: Traits("delivery", ENTRY),
    MessageKind.TELL_MANY: Traits("delivery", ENTRY_ROWS),
    MessageKind.ASK: Traits("delivery", ENTRY, is_answered=True),
    MessageKind.BATCH: Traits("delivery", ENTRY),
    MessageKind.ANSWER: Traits("answer", SEQUENCE),
    MessageKind.FAILED: Traits("answer", SEQUENCE),
    MessageKind.BEGIN: Traits("staging", is_answered=True),
    MessageKind.DATA: Traits("staging"),
    MessageKind.END: Traits("staging", is_answered=True),
    MessageKind.STAGED: Traits("answer"),
    MessageKind.COMMIT: Traits("staging", is_answered=True),
    MessageKind.ABORT: Traits("staging", is_answered=True),
    MessageKind.PUBLISHED: Traits("publishing", is_answered=True),
    MessageKind.READ: Traits("publishing", is_answered=True),
    MessageKind.RELEASE: Traits("publishing", is_answered=True),
}
"""A side adds what it does with a kind: `_HANDLERS` in `server_side` and `client_side`."""

_KINDS = {int(kind): kind for kind in MessageKind}


def _group(name: str) -> frozenset[MessageKind]:
    return frozenset(kind for kind, traits in TRAITS.items() if traits.group == name)


DELIVERIES = _group("delivery")
STAGING = _group("staging")  # of rows that count once, though tasks fail and repeat
PUBLISHING = _group("publishing")  # of rows that an actor publishes, and clients read
ANSWERED = frozenset(kind for kind, traits in TRAITS.items() if traits.is_answered)

LONGEST_SECRET = 1024
LONGEST_TRACE = 512  # bytes of a TRACE; a W3C traceparent has 55
# Before it is known who the client is, nothing is to be longer.
HELLO_LIMIT = 4 + 1 + HELLO.size + LONGEST_SECRET


def by_number(handlers: Mapping[MessageKind, T]) -> dict[int, tuple[MessageKind, Struct, T]]:
    """Return the handlers of a side by the numbers of kinds, each with the kind and its layout.

    On CPython 3.11 to look into an enumeration costs more than to unpack a frame.
    """
    return {int(kind): (kind, TRAITS[kind].layout, handle) for kind, handle in handlers.items()}


class Farewell(IntEnum):
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
        return self >= Farewell.SECRET


class Parting(NamedTuple):
    """The other side ends the connection."""

    reason: Farewell
    text: str


class Rejected(ProtocolError):
    """A frame of the other side ends the connection, with this reason."""

    def __init__(self, text: str, reason: Farewell = Farewell.PROTOCOL) -> None:
        super().__init__(text)
        self.reason = reason


def kind_of(number: int) -> MessageKind:
    """Return the kind with this number. Raises Rejected."""
    kind = _KINDS.get(number)
    if kind is None:
        raise Rejected(f"no kind of message of version {VERSION}: {number}")
    return kind


def unpack(layout: Struct, body: Buffer, kind: MessageKind) -> tuple[tuple[Any, ...], Buffer]:
    """Return the numbers at the beginning of a body, and the rest of it. Raises Rejected."""
    if len(body) < layout.size:
        raise Rejected(f"a {kind.name} of {len(body)} bytes is shorter than {layout.size}")
    return layout.unpack_from(body), body[layout.size :]


def farewell(reason: Farewell, text: str) -> bytes:
    """Return a GOODBYE."""
    return frame(MessageKind.GOODBYE, GOODBYE.pack(reason), text.encode(errors="replace")[:1_000])


def parting(body: Buffer) -> Parting:
    """Read a GOODBYE. Raises Rejected."""
    (code,), text = unpack(GOODBYE, body, MessageKind.GOODBYE)
    try:
        reason = Farewell(code)
    except ValueError:
        raise Rejected(f"no reason to part: {code}") from None
    return Parting(reason, bytes(text[:1_000]).decode(errors="replace"))


class Account:
    """Messages and bytes on their way, and the most that may be. Each side keeps one."""

    def __init__(self, most_messages: int, most_bytes: int) -> None:
        self.most_messages = most_messages
        self.most_bytes = most_bytes
        self.messages = 0
        self.bytes = 0

    def has_room(self, messages: int, size: int) -> bool:
        """Tell whether so much more may be on its way."""
        return (
            self.messages + messages <= self.most_messages and self.bytes + size <= self.most_bytes
        )

    def take(self, messages: int, size: int) -> None:
        """Note what goes on its way. Raises Rejected if there is no room."""
        if not self.has_room(messages, size):
            raise Rejected(
                f"{messages} messages of {size} bytes are beyond the credit: {self.messages} of "
                f"{self.most_messages} messages and {self.bytes} of {self.most_bytes} bytes are "
                "on their way"
            )
        self.messages += messages
        self.bytes += size

    def give_back(self, messages: int, size: int) -> None:
        """Note what was handled. Raises Rejected if that is more than is on its way."""
        if not (0 <= messages <= self.messages and 0 <= size <= self.bytes):
            raise Rejected(
                f"credit for {messages} messages of {size} bytes, and {self.messages} of "
                f"{self.bytes} bytes are on their way"
            )
        self.messages -= messages
        self.bytes -= size
