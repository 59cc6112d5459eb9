"""The standard library alone: a thread for each actor, over a `queue.SimpleQueue`."""

from queue import SimpleQueue
from threading import Thread
from typing import Any

from hosts import base
from hosts.base import TIMEOUT, Behaviour, Question, Ref

STOP = object()


class ThreadActor:
    """A behaviour, its queue and the loop between them."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.queue: SimpleQueue[Any] = SimpleQueue()
        self.tell = self.queue.put
        behaviour.stop = self.stop
        Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        get, receive = self.queue.get, self.behaviour.receive
        while (message := get()) is not STOP:
            if type(message) is Question:
                message.answer(receive(message.message))
            else:
                receive(message)

    def stop(self) -> None:
        self.tell(STOP)


class Host(base.Host):
    def __init__(self) -> None:
        super().__init__()
        self.actors: list[ThreadActor] = []

    def spawn(self, behaviour: type[Behaviour], *args: Any) -> Ref:
        actor = ThreadActor(behaviour(*args))
        self.actors.append(actor)
        return actor

    def ask(self, ref: Ref, message: Any) -> Any:
        answers: SimpleQueue[Any] = SimpleQueue()
        ref.tell(Question(message, answers.put))
        return answers.get(timeout=TIMEOUT)

    def close(self) -> None:
        for actor in self.actors:
            actor.stop()
