"""The application of the benchmarks' servers: an actor that adds up rows, and answers."""

import time
from typing import Any

from callboard import Actor, ActorRef, ActorSystem


class Sink(Actor[Any]):
    """Adds up the first column of rows, and of record batches.

    An int it answers with the next, a list with its length.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.total = 0

    def receive(self, message: Any) -> Any:
        if type(message) is tuple:
            self.rows += 1
            self.total += message[0]
        elif type(message) is int:
            return message + 1
        elif type(message) is list:
            return len(message)
        elif message == "report":
            return self.rows, self.total, time.process_time()
        else:
            self.rows += message.num_rows
            self.total += message.num_rows
        return None


def build(system: ActorSystem) -> ActorRef[Any]:
    return system.spawn(Sink, name="sink")
