"""The interface of a host for benchmarks."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from typing import Any, Protocol

TIMEOUT = 300.0  # seconds; a lost message ends a run with an error, not with a hang


class Ref(Protocol):
    """What behaviours hold on each other."""

    def tell(self, message: Any) -> Any: ...


class Behaviour:
    """What an actor does, in words that every host understands."""

    stop: Callable[[], Any]  # each host supplies its own

    def receive(self, message: Any) -> Any:
        raise NotImplementedError


class Question:
    """A message that wants an answer, for hosts whose library has none."""

    __slots__ = ("answer", "message")

    def __init__(self, message: Any, answer: Any = None) -> None:
        self.message = message
        self.answer = answer


class Host(ABC):
    """An open library; the defaults fit those that run actors on threads."""

    def __init__(self) -> None:
        self._results: SimpleQueue[Any] = SimpleQueue()
        self.done: Callable[[Any], Any] = self._results.put
        self._classes: dict[type[Behaviour], Any] = {}

    @abstractmethod
    def spawn(self, behaviour: type[Behaviour], *args: Any) -> Ref:
        """Start an actor of `behaviour(*args)`."""

    @abstractmethod
    def ask(self, ref: Any, message: Any) -> Any:
        """Return what the actor's `receive(message)` returns."""

    @abstractmethod
    def close(self) -> None:
        """Stop every actor."""

    def derive(self, behaviour: type[Behaviour]) -> Any:
        """Make the library's actor class of a behaviour, where it has actor classes."""
        raise NotImplementedError

    def actor_class(self, behaviour: type[Behaviour]) -> Any:
        """Return the actor class of a behaviour, made once."""
        if behaviour not in self._classes:
            self._classes[behaviour] = self.derive(behaviour)
        return self._classes[behaviour]

    def feed(self, ref: Ref, messages: Iterable[Any]) -> None:
        """Send `messages` to one actor, from outside."""
        tell = ref.tell
        for message in messages:
            tell(message)

    def feed_all(self, refs: Iterable[Ref], messages: Iterable[Any]) -> None:
        """Send each of `messages` to each of the actors in turn, from outside."""
        tells = [ref.tell for ref in refs]
        for message in messages:
            for tell in tells:
                tell(message)

    def spawn_each(self, behaviour: type[Behaviour], messages: Iterable[Any], *args: Any) -> None:
        """Start an actor for each of `messages` and send it."""
        for message in messages:
            self.spawn(behaviour, *args).tell(message)

    def wait(self, count: int = 1) -> list[Any]:
        """Return the next `count` values that actors gave to `done`."""
        return [self._results.get(timeout=TIMEOUT) for _ in range(count)]

    def lost(self) -> int:
        """Count the messages that reached no actor, as far as the library tells."""
        return 0
