"""Take urgent messages first, and equal ones in order of arrival.

Prints:

    urgent: the roof leaks
    urgent: the door is open
    soon: water the plants
    later: paint the fence
"""

from typing import NamedTuple

from callboard import Actor, ActorSystem, PriorityMailbox


class Task(NamedTuple):
    priority: int
    text: str


WORDS = ("urgent", "soon", "later")


class Caretaker(Actor[Task]):
    def receive(self, task: Task) -> None:
        print(f"{WORDS[task.priority]}: {task.text}")


class House(Actor[list[Task]]):
    """Pass all tasks on before the caretaker, on the same worker, can start."""

    def on_start(self) -> None:
        self.caretaker = self.spawn(
            Caretaker, mailbox=PriorityMailbox(key=lambda task: task.priority)
        )

    def receive(self, tasks: list[Task]) -> None:
        self.caretaker.tell_many(tasks)


if __name__ == "__main__":
    with ActorSystem(workers=1) as system:
        house = system.spawn(House)
        house.tell(
            [
                Task(2, "paint the fence"),
                Task(0, "the roof leaks"),
                Task(1, "water the plants"),
                Task(0, "the door is open"),
            ]
        )
