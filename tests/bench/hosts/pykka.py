"""Pykka: the behaviour's class and `pykka.ThreadingActor` in one; a thread for each actor."""

from typing import Any

import pykka

from hosts import base
from hosts.base import TIMEOUT, Behaviour, Ref


class Host(base.Host):
    """Pykka needs no system: actors are started, and stopped all together."""

    def derive(self, behaviour: type[Behaviour]) -> type[Any]:
        def initialise(self: Any, *args: Any) -> None:
            pykka.ThreadingActor.__init__(self)
            behaviour.__init__(self, *args)

        members: dict[str, Any] = {
            "__init__": initialise,
            "on_receive": behaviour.receive,
            "stop": pykka.Actor.stop,
        }
        return type(behaviour.__name__, (behaviour, pykka.ThreadingActor), members)

    def spawn(self, behaviour: type[Behaviour], *args: Any) -> Ref:
        ref: Ref = self.actor_class(behaviour).start(*args)
        return ref

    def ask(self, ref: pykka.ActorRef[Any], message: Any) -> Any:
        return ref.ask(message, timeout=TIMEOUT)

    def close(self) -> None:
        pykka.ActorRegistry.stop_all()
