"""Pipeline: values go through stages that each add 1; without stages, from one task to another."""

from typing import Any

from channels.libraries import LIBRARIES, Planned
from channels.parts import Consumer, Producer, Stage
from savina.result import Result


def run(
    n: int, *, by: str = "callboard", capacity: int = 16, stages: int = 0, **options: Any
) -> Result:
    library = LIBRARIES[by](**options)
    send, receive = library.channel(capacity)
    parts: list[Planned] = [(Producer, send, range(n))]
    for _ in range(stages):
        send, following = library.channel(capacity)
        parts.append((Stage, receive, send, n))
        receive = following
    parts.append((Consumer, receive, n, stages))
    return library.result(n * max(1, stages), parts, want=n)
