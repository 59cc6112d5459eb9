"""callboard again, where a behaviour is played by the native actor of its name."""

from collections.abc import Iterable
from queue import SimpleQueue
from typing import Any

from hosts import callboard
from hosts.base import TIMEOUT, Behaviour, Ref
from natives import load


class Host(callboard.Host):
    """An `ActorSystem` of native actors; a range of numbers is fed by one of them, too."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.actors = load()

    def derive(self, behaviour: type[Behaviour]) -> type[Any]:
        native: type[Any] = getattr(self.actors, behaviour.__name__)
        return native

    def feed(self, ref: Ref, messages: Iterable[Any]) -> None:
        self.feed_all([ref], messages)

    def feed_all(self, refs: Iterable[Ref], messages: Iterable[Any]) -> None:
        if isinstance(messages, range):
            fed: SimpleQueue[int] = SimpleQueue()
            feeder = self.system.spawn(self.actors.Feeder, messages.stop, list(refs), fed.put)
            feeder.tell(0)
            fed.get(timeout=TIMEOUT)
        else:
            super().feed_all(refs, messages)
