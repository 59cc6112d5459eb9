"""Ping-pong: a number goes to and fro between two tasks over two channels of capacity 1."""

from typing import Any

from channels.libraries import LIBRARIES
from channels.parts import Player, Stage
from savina.result import Result


def run(n: int, *, by: str = "callboard", capacity: int = 1, **options: Any) -> Result:
    library = LIBRARIES[by](**options)
    rounds = n // 2
    send, receive = library.channel(capacity)
    send_back, receive_back = library.channel(capacity)
    parts = [(Stage, receive, send_back, rounds), (Player, send, receive_back, rounds)]
    return library.result(2 * rounds, parts, want=rounds)
