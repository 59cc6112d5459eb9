"""Let a file decide where actors live and which one runs next, and look at the result.

Prints:

    /square-0 on policies-0: 25 messages
    /square-1 on policies-0: 25 messages
    /square-2 on policies-1: 25 messages
    /square-3 on policies-1: 25 messages
    /total on policies-1: 100 messages
    the sum is 328350
"""

from pathlib import Path

from callboard import Actor, ActorRef, ActorSystem


class Total(Actor[int]):
    def __init__(self) -> None:
        self.total = 0

    def receive(self, number: int) -> int:
        self.total += number
        return self.total


class Square(Actor[int]):
    def __init__(self, total: ActorRef[int]) -> None:
        self.total = total

    def receive(self, number: int) -> None:
        self.total.tell(number * number)


if __name__ == "__main__":
    with ActorSystem("policies", config=Path(__file__).with_suffix(".toml")) as system:
        total = system.spawn(Total, name="total")
        squares = [system.spawn(Square, total, name=f"square-{i}") for i in range(4)]
        for number in range(100):
            squares[number % 4].tell(number)
        system.drain()
        for actor in sorted(system.statistics().actors, key=lambda actor: actor.path):
            print(f"{actor.path} on {actor.worker}: {actor.messages} messages")
        print("the sum is", total.ask(0).result(timeout=30.0))
