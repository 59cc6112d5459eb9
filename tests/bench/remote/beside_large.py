"""Ask one thing at a time of an actor, while another client sends the largest frames that it may.

Measured is the longest that an ask waits, in milliseconds. `by` says what the other client's frames
are full of; "nothing": there is none.
"""

import socket
import time
from collections.abc import Callable
from threading import Thread

from callboard.remote import Connection
from callboard.remote.protocol.kinds import MAGIC, VERSION, MessageKind
from callboard.remote.protocol.server_side import ServerLimits
from callboard.remote.wire.codec import VERSION as ENCODING
from callboard.remote.wire.codec import Codec
from callboard.remote.wire.frames import Splitter, frame
from remote.processes import served
from savina.result import Quantity

WARM = 200  # asks
MOST = ServerLimits().values - 4
CODEC = Codec()
# One item, and as how many values it counts.
ITEMS = {
    "dicts": (b"\x80", 4),
    "sets": (b"\xc7\1\2\x90", 4),
    "tuples": (b"\xd5\1\x91\1", 5),
    "decimals": (b"\xd4\x091", 1),
    "ints": (b"\1", 1),
}


def largest(kind: str) -> tuple[bytes, int]:
    """Return a list that is as large as may be, as bytes, and how many items it has."""
    item, values = ITEMS[kind]
    count = min(MOST // values, (ServerLimits().frame - 64) // len(item))
    return b"\xdd" + count.to_bytes(4, "big") + item * count, count


class Other:
    """Another client, which needs no interpreter for what it sends."""

    def __init__(self, path: str, kind: str) -> None:
        body, self._items = largest(kind)
        self._ask = frame(MessageKind.ASK, MessageKind.TELL.pack(0), body)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)
        self._splitter = Splitter(1 << 20)
        self._send(frame(MessageKind.HELLO, MessageKind.HELLO.pack(MAGIC, VERSION, ENCODING)))
        self.right = False

    def _send(self, data: bytes) -> tuple[int, bytes]:
        """Send, and return the kind and the body of what comes."""
        self._socket.sendall(data)
        while some := self._socket.recv(1 << 16):
            for received in self._splitter.feed(some):
                return received.kind, bytes(received.body)
        raise ConnectionError("the server has closed the connection")

    def send(self, frames: int) -> None:
        right = 0
        for _ in range(frames):
            kind, body = self._send(self._ask)
            answer = CODEC.decode(body[MessageKind.ANSWER.layout.size :])
            right += kind == MessageKind.ANSWER and answer == self._items
        self.right = right == frames


def longest(connection: Connection, goes_on: Callable[[int], bool]) -> tuple[float, int]:
    """Ask as long as it goes on, with so many asks before: the longest time in seconds, and how
    many answers were wrong.
    """
    ask = connection.ref("sink").ask
    most, wrong, number = 0.0, 0, 0
    while goes_on(number):
        begin = time.perf_counter()
        wrong += ask(number).result() != number + 1
        number += 1
        most = max(most, time.perf_counter() - begin)
    return most, wrong


def run(frames: int, by: str = "dicts") -> Quantity:
    with served() as connection:
        longest(connection, WARM.__gt__)
        if by == "nothing":
            most, wrong = longest(connection, (100 * frames).__gt__)
            return Quantity(most * 1e3, wrong, 0)
        other = Other(str(connection.address.path), by)  # type: ignore[union-attr]
        sending = Thread(target=other.send, args=(frames,))
        sending.start()
        most, wrong = longest(connection, lambda number: sending.is_alive())
        sending.join()
    return Quantity(most * 1e3, wrong if other.right else "what the other got", 0)
