"""Fixtures of the tests of policies and monitoring."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from callboard import Actor, ActorSystem
from callboard.policies import PlacementPolicy

Hold = Callable[..., AbstractContextManager[None]]


class Gate(Actor[tuple[threading.Event, threading.Event]]):
    """Keeps its worker until it is let go."""

    def receive(self, message: tuple[threading.Event, threading.Event]) -> None:
        entered, leave = message
        entered.set()
        assert leave.wait(30)


@pytest.fixture
def hold() -> Hold:
    """A context in which a worker is busy: the only one, or that of a placement.

    What the worker is told meanwhile gathers, and it steals nothing.
    """

    @contextmanager
    def held(system: ActorSystem, placement: PlacementPolicy | None = None) -> Iterator[None]:
        system.drain()
        entered, leave = threading.Event(), threading.Event()
        gate = system.spawn(Gate, placement=placement)
        gate.tell((entered, leave))
        assert entered.wait(30)
        try:
            yield
        finally:
            gate.stop()  # first, so that it is not woken once more to stop
            leave.set()

    return held
