"""callboard: the behaviour's class and `callboard.Actor` in one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from callboard import Actor, ActorRef, ActorSystem
from hosts import base
from hosts.base import TIMEOUT, Behaviour


class Host(base.Host):
    """An `ActorSystem`, of one worker if nothing is said; the options are its constructor's."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.workers: int = options.setdefault("workers", 1)
        self.system = ActorSystem(**options)

    def derive(self, behaviour: type[Behaviour]) -> type[Any]:
        return type(behaviour.__name__, (behaviour, Actor), {})

    def spawn(self, behaviour: type[Behaviour], *args: Any, **options: Any) -> ActorRef[Any]:
        return self.system.spawn(self.actor_class(behaviour), *args, **options)

    def spawn_each(self, behaviour: type[Behaviour], messages: Iterable[Any], *args: Any) -> None:
        spawn, cls = self.system.spawn, self.actor_class(behaviour)
        for message in messages:
            spawn(cls, *args).tell(message)

    def ask(self, ref: ActorRef[Any], message: Any) -> Any:
        return ref.ask(message).result(timeout=TIMEOUT)

    def lost(self) -> int:
        return self.system.dead_letters.count

    def close(self) -> None:
        self.system.stop()
