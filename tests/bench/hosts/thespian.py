"""Thespian in one process (`simpleSystemBase`, its fastest): actors run inside `tell` and `ask`."""

from typing import Any

from thespian.actors import Actor, ActorAddress, ActorExitRequest, ActorSystem

from hosts import base
from hosts.base import TIMEOUT, Behaviour, Question, Ref


class AddressRef:
    """An address to which whichever actor is running now, or else the system, sends."""

    __slots__ = ("address", "host")

    def __init__(self, address: ActorAddress, host: "Host") -> None:
        self.address = address
        self.host = host

    def tell(self, message: Any) -> None:
        self.host.send(self.address, message)


class Host(base.Host):
    def __init__(self) -> None:
        super().__init__()
        self.system = ActorSystem("simpleSystemBase", logDefs=False)
        self.send = self.system.tell
        self.args: tuple[Any, ...] = ()

    def derive(self, behaviour: type[Behaviour]) -> type[Any]:
        """Derive a class that finds its constructor's arguments, which Thespian does not pass."""
        host = self

        class ThespianActor(behaviour, Actor):  # type: ignore[misc, valid-type]
            def __init__(self) -> None:
                behaviour.__init__(self, *host.args)

            def receiveMessage(self, message: Any, sender: ActorAddress) -> None:  # noqa: N802
                host.send = self.send
                if type(message) is Question:
                    self.send(sender, (self.receive(message.message),))
                elif type(message) is not ActorExitRequest:
                    self.receive(message)
                host.send = host.system.tell

            def stop(self) -> None:
                self.send(self.myAddress, ActorExitRequest())

        return ThespianActor

    def spawn(self, behaviour: type[Behaviour], *args: Any) -> Ref:
        self.args = args
        return AddressRef(self.system.createActor(self.actor_class(behaviour)), self)

    def ask(self, ref: AddressRef, message: Any) -> Any:
        (answer,) = self.system.ask(ref.address, Question(message), TIMEOUT)
        return answer

    def close(self) -> None:
        self.system.shutdown()
