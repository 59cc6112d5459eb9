"""The messages of client and server: their kinds, and the content of each body.

Numbers are in network order. "A value" is as `codec` encodes it, text is UTF-8. A delivery is a
TELL, TELL_MANY, ASK or BATCH, or one of staging or of published rows. Its sequence number is its
place among the deliveries of its connection, from 1 on. `docs/serve.md` has the table.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import Any, NamedTuple

from callboard.remote.errors import ProtocolError
from callboard.remote.wire.frames import Buffer, frame

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


_KINDS = {int(kind): kind for kind in MessageKind}

# Messages about rows that count once, though tasks fail and repeat; `staged_rows` has their bodies.
STAGING = frozenset(
    {MessageKind.BEGIN, MessageKind.DATA, MessageKind.END, MessageKind.COMMIT, MessageKind.ABORT}
)
# Messages about rows that an actor publishes, and clients read; `published_rows` has their bodies.
PUBLISHING = frozenset({MessageKind.PUBLISHED, MessageKind.READ, MessageKind.RELEASE})
# The kinds that are answered, which gives their credit back. All others are told, and credited by
# CREDIT.
ANSWERED = (STAGING - {MessageKind.DATA}) | PUBLISHING | {MessageKind.ASK}

HELLO = Struct("!8sHH")  # magic, version of the protocol, of the codec; then the secret
GOODBYE = Struct("!B")  # a Farewell; then a text
NONCE = Struct("!Q")  # of a PING; a PONG has the same one, then a value: the server's health
CREDIT = Struct("!QQ")  # messages and bytes of TELL, TELL_MANY and BATCH handled so far
ENTRY = Struct("!H")  # an entry point's place in WELCOME; then a value, or for a BATCH Arrow's IPC
ENTRY_ROWS = Struct("!HI")  # the same for a TELL_MANY, and how many rows follow
SEQUENCE = Struct("!Q")  # of an ANSWER, then a value; of a FAILED, then a list of two texts

LONGEST_SECRET = 1024
LONGEST_TRACE = 512  # bytes of a TRACE; a W3C traceparent has 55
# Before it is known who the client is, nothing is to be longer.
HELLO_LIMIT = 4 + 1 + HELLO.size + LONGEST_SECRET


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
