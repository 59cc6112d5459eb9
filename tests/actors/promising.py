"""Actors that answer later, and actors that pass an answer on."""

from typing import Any

from callboard import Actor, ActorRef, Future


class Promising(Actor[Any]):
    """Answers with futures of its own, which the test completes."""

    def __init__(self, promises: list[Future[Any]]) -> None:
        self.promises = promises

    def receive(self, message: Any) -> Any:
        if message == "fail":
            raise LookupError("as told")
        if message == "how are you":
            return "well"
        promise: Future[Any] = Future()
        self.promises.append(promise)
        return promise


class Link(Actor[Any]):
    """Passes asks on to the next of a chain; the last one answers."""

    def __init__(self, following: ActorRef[Any] | None) -> None:
        self.following = following

    def receive(self, message: Any) -> Any:
        return message if self.following is None else self.following.ask(message)
