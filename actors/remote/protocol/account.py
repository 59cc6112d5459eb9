"""Credit: how much a client may have on its way that the server has not handled."""

from __future__ import annotations

from callboard.remote.protocol.kinds import Rejected


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
