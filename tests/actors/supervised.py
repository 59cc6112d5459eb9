"""Actors that fail on request."""

from typing import Any

from callboard import Actor, ActorRef, Terminated


class Worker(Actor[Any]):
    """Counts its messages, and does what callables say."""

    def __init__(self, journal: list[Any] | None = None, prefix: str = "") -> None:
        self.journal: list[Any] = journal if journal is not None else []
        self.prefix = prefix
        self.count = 0
        self.journal.append(f"{prefix}init")

    def on_start(self) -> None:
        self.journal.append(f"{self.prefix}start")

    def receive(self, message: Any) -> Any:
        if message == "fail":
            raise ValueError("as told")
        if callable(message):
            return message(self)
        self.count += 1
        return self.count

    def on_stop(self) -> None:
        self.journal.append(f"{self.prefix}stop")


class Parent(Actor[Any]):
    """Spawns what it is told, and does what callables say."""

    def receive(self, message: Any) -> Any:
        if callable(message):
            return message(self)
        arguments, options = message
        return self.spawn(*arguments, **options)


def spawn_in(parent: ActorRef[Any], *arguments: Any, **options: Any) -> ActorRef[Any]:
    ref: ActorRef[Any] = parent.ask((arguments, options)).result(timeout=30)
    return ref


def ask(ref: ActorRef[Any], message: Any) -> Any:
    return ref.ask(message).result(timeout=30)


class Watching(Actor[Any]):
    """Watches others, and answers with what it has been told of their ends."""

    def __init__(self, *others: ActorRef[Any]) -> None:
        self.seen: list[Terminated] = []
        for other in others:
            self.watch(other)

    def receive(self, message: Any) -> Any:
        if isinstance(message, Terminated):
            self.seen.append(message)
        return self.seen
