"""Define an actor, tell it something, ask it something.

Prints:

    Hello, Ada
    Hello, Grace
    greeted 2
"""

from callboard import Actor, ActorSystem


class Greeter(Actor[str]):
    def __init__(self) -> None:
        self.greeted = 0

    def receive(self, name: str) -> int:
        print(f"Hello, {name}")
        self.greeted += 1
        return self.greeted


if __name__ == "__main__":
    with ActorSystem() as system:
        greeter = system.spawn(Greeter, name="greeter")
        greeter.tell("Ada")  # returns at once; the actor's worker handles it
        answer = greeter.ask("Grace")  # returns a future
        print("greeted", answer.result(timeout=30.0))
