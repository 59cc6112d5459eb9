"""A server and its connections without sockets: bytes move when a test says so."""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from callboard.remote.protocol.kinds import HELLO_LIMIT, Goodbye, GoodbyeReason, MessageKind
from callboard.remote.protocol.server_side import Delivery, Greeting, Ping, ServerLimits, ServerSide
from callboard.remote.wire.codec import Codec
from callboard.remote.wire.frames import Splitter

LIMITS = ServerLimits(messages=12)
for name, size in (("frame", 200), ("bytes", 500)):  # smaller than the least that a user may choose
    object.__setattr__(LIMITS, name, size)
ENTRIES = ("first", "second")
CODEC = Codec()
SECRET = b"0123456789abcdef"


@dataclass
class SimulatedConnection:
    """The server's end of a connection, and the bytes on their way in both directions."""

    side: ServerSide = field(
        default_factory=lambda: ServerSide(CODEC, LIMITS, ENTRIES, SECRET.__eq__)
    )
    splitter: Splitter = field(default_factory=lambda: Splitter(HELLO_LIMIT))
    to_server: bytearray = field(default_factory=bytearray)
    to_client: bytearray = field(default_factory=bytearray)
    broken: bool = False
    parted: bool = False

    def say(self, data: bytes) -> None:
        if not self.broken:
            self.to_client += data


class SimulatedServer:
    """Takes deliveries, and handles them in their order when it is told to."""

    def __init__(self) -> None:
        self.taken: deque[tuple[SimulatedConnection, Delivery]] = deque()
        self.handled: list[tuple[str, Any]] = []
        """The entry point's name, and the value, of each message."""
        self.asked: list[Any] = []

    def move(self, connection: SimulatedConnection, count: int) -> None:
        """Let so many bytes arrive at the server."""
        data = bytes(connection.to_server[:count])
        del connection.to_server[:count]
        for received in connection.splitter.feed(data):
            event = connection.side.receive(received)
            if isinstance(event, Greeting):
                connection.splitter.limit = LIMITS.frame
                connection.say(connection.side.welcome({}))
            elif isinstance(event, Delivery):
                assert not connection.parted, "taken after the server's goodbye"
                self.taken.append((connection, event))
            elif isinstance(event, Ping):
                connection.say(connection.side.pong(event, {"handled": len(self.handled)}))
            else:
                assert event is None or isinstance(event, Goodbye)
        connection.say(connection.side.deferred_credit())

    def handle(self, *, looks: bool = False) -> None:
        """Handle the oldest delivery. An ask for an odd number fails.

        With `looks` the server looks whether more is coming before it gives credit.
        """
        connection, delivery = self.taken.popleft()
        entry = ENTRIES[delivery.entry]
        if delivery.kind is MessageKind.TELL_MANY:
            values = CODEC.decode_rows(delivery.body)
            assert len(values) == delivery.messages
        else:
            values = [CODEC.decode(delivery.body)]
        self.handled += [(entry, value) for value in values]
        if delivery.kind is not MessageKind.ASK:
            connection.say(
                connection.side.handled(delivery, lambda: looks and bool(connection.to_server))
            )
            return
        self.asked += values
        if values[0] % 2:
            connection.say(connection.side.failed(delivery, "ValueError", "odd"))
        else:
            connection.say(connection.side.answer(delivery, CODEC.encode(values[0] * 10)))

    def part(self, connection: SimulatedConnection) -> None:
        connection.parted = True
        connection.say(connection.side.goodbye(GoodbyeReason.DRAINING, "it drains"))
