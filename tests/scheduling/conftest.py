"""What the tests of policies and monitoring share."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from callboard import Actor, ActorSystem

Hold = Callable[[ActorSystem], AbstractContextManager[None]]


class Gate(Actor[tuple[threading.Event, threading.Event]]):
    """Keeps its worker until it is let go."""

    def receive(self, message: tuple[threading.Event, threading.Event]) -> None:
        entered, leave = message
        entered.set()
        assert leave.wait(30)


@pytest.fixture
def hold() -> Hold:
    """A context in which a system's one worker is busy, so that what is told meanwhile gathers."""

    @contextmanager
    def held(system: ActorSystem) -> Iterator[None]:
        system.drain()
        entered, leave = threading.Event(), threading.Event()
        gate = system.spawn(Gate)
        gate.tell((entered, leave))
        assert entered.wait(30)
        try:
            yield
        finally:
            leave.set()
            gate.stop()

    return held
