"""Fan-in: producers share a channel to one consumer, which adds up what they send."""

from typing import Any

from channels.libraries import LIBRARIES, Planned
from channels.parts import Adder, Producer
from savina.result import Result


def run(
    n: int, *, by: str = "callboard", capacity: int = 16, producers: int = 16, **options: Any
) -> Result:
    library = LIBRARIES[by](**options)
    chunk = n // producers
    values = chunk * producers
    sends, receive = library.fan_in(capacity, producers)
    parts: list[Planned] = [
        (Producer, send, range(place, values, producers)) for place, send in enumerate(sends)
    ]
    parts.append((Adder, receive, values))
    return library.result(values, parts, want=values * (values - 1) // 2)
