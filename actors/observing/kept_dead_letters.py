"""The latest dead letters of a system, for display."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

from callboard.core.text import safe_str, short_repr

MOST_LETTERS = 100


class _KeptDeadLetter:
    """A dead letter. When it is first shown, its text is made, and its message is released."""

    __slots__ = ("_message", "_text", "at", "error", "reason", "recipient", "sender")

    def __init__(self, message: Any, recipient: Any, sender: Any, reason: str, error: Any) -> None:
        self.at = time.time()
        self._message, self.recipient, self.sender = message, recipient, sender
        self.reason, self.error = reason, error
        self._text: str | None = None

    def shown(self) -> dict[str, Any]:
        """Return the letter for JSON."""
        message, text = self._message, self._text  # in this order: another observer may look, too
        if text is None:
            self._text = text = short_repr(message)
            self._message = None
        error = self.error
        return {
            "at": self.at,
            "message": text,
            "reason": self.reason,
            "to": self.recipient._short_path,
            "sender": None if self.sender is None else self.sender._short_path,
            "error": None if error is None else f"{type(error).__qualname__}: {safe_str(error)}",
        }


class KeptDeadLetters:
    """The latest dead letters with their messages, at most 100. Any thread."""

    def __init__(self) -> None:
        self._letters: deque[_KeptDeadLetter] = deque(maxlen=MOST_LETTERS)

    def keep(
        self, message: Any, recipient: Any, sender: Any, reason: str, error: BaseException | None
    ) -> None:
        """Keep a letter, and forget the oldest. The thread that made the letter calls this."""
        self._letters.append(_KeptDeadLetter(message, recipient, sender, reason, error))

    def latest(self, most: int) -> list[dict[str, Any]]:
        """Return the latest letters, the last one first, for JSON. Makes their messages' texts."""
        letters = self._letters.copy() if most else ()
        return [letter.shown() for letter in [*letters][::-1][:most]]
