"""See what became of messages that nobody handled.

Prints:

    'two' to worker: failed, two is bad
    'three' to worker: stopped, /worker failed: ValueError: two is bad
    2 dead letters
"""

from callboard import Actor, ActorSystem, DeadLetter


class Worker(Actor[str]):
    def receive(self, message: str) -> None:
        if message == "two":
            raise ValueError("two is bad")


class Undertaker(Actor[DeadLetter]):
    def receive(self, letter: DeadLetter) -> None:
        why = f"{letter.reason}, {letter.error}" if letter.error else letter.reason
        print(f"{letter.message!r} to {letter.recipient.name}: {why}")


if __name__ == "__main__":
    with ActorSystem() as system:
        system.dead_letters.subscribe(system.spawn(Undertaker))
        worker = system.spawn(Worker, name="worker")  # stops at its first failure, by default
        worker.tell_many(["one", "two", "three"])
        system.drain()
        print(system.dead_letters.count, "dead letters")
