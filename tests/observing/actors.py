"""Actors and helpers that the tests of this folder share."""

from __future__ import annotations

import threading
from typing import Any

from callboard import Actor, ActorRef


class Box(Actor[Any]):
    def receive(self, message: Any) -> None:
        if message == "fail":
            raise ValueError(message)


class Pinger(Actor[Any]):
    """Passes a number on, less one, to a partner that it is told first."""

    def __init__(self) -> None:
        self.partner: ActorRef[Any] | None = None

    def receive(self, message: Any) -> None:
        if self.partner is None:
            self.partner = message
        elif message:
            self.partner.tell(message - 1)


class Passage:
    """A place in an actor's code that the test can see it come to, and lets it pass."""

    def __init__(self) -> None:
        self.entered, self.leave = threading.Event(), threading.Event()

    def pass_through(self) -> None:
        self.entered.set()
        assert self.leave.wait(60)


class Holder(Actor[Passage]):
    """Stays in the middle of a message."""

    def receive(self, message: Passage) -> None:
        message.pass_through()
