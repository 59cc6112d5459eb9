"""Functions and classes of users for tests of worker processes, which import them from here."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import strategies as st

from callboard import ActorSystem
from callboard.streams import Graph

options = st.fixed_dictionaries(
    {"batch_size": st.sampled_from([1, 2, 7, 256]), "window": st.sampled_from([1, 2, 4, 16])}
)


LIMIT = 200.0  # seconds: on a busy machine, the start of a process takes some


def run(system: ActorSystem, graph: Graph[Any], sent: Any, **options: Any) -> Any:
    made = system.run(graph, **options)
    made.send("rows", sent, timeout=LIMIT)
    return made.finish(timeout=LIMIT)


def tripled(number: int) -> int:
    return number * 3


def is_even(number: int) -> bool:
    return number % 2 == 0


def process_of(_: Any) -> int:
    return os.getpid()


def refuse_seven(number: int) -> int:
    if number == 7:
        raise ValueError("seven")
    return number


class Picky:
    """Refuses to be pickled."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __reduce__(self) -> Any:
        raise TypeError("this one stays")
