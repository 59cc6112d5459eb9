"""Slow a fast producer down to a slow consumer with bounded mailboxes.

Prints:

    1000 sums, at most 8 waiting
"""

from callboard import Actor, ActorRef, ActorSystem, BoundedMailbox

WAITING = 8


class Sum(Actor[int]):
    """Do the slow work."""

    def __init__(self) -> None:
        self.sums = 0
        self.most_waiting = 0

    def receive(self, number: int) -> None:
        self.most_waiting = max(self.most_waiting, self.ref.statistics().queue or 0)
        sum(range(number))
        self.sums += 1

    def on_stop(self) -> None:
        print(f"{self.sums} sums, at most {WAITING} waiting")
        assert self.most_waiting <= WAITING


class Parse(Actor[str]):
    """Turn text into numbers. A worker whose send finds the mailbox full helps to empty it."""

    def __init__(self, target: ActorRef[int]) -> None:
        self.target = target

    def receive(self, text: str) -> None:
        self.target.tell(int(text))


if __name__ == "__main__":
    with ActorSystem(workers=2) as system:
        adder = system.spawn(Sum, mailbox=BoundedMailbox(WAITING, overflow="help"))
        # This thread is no worker: it sleeps while the mailbox is full.
        parser = system.spawn(Parse, adder, mailbox=BoundedMailbox(WAITING, overflow="block"))
        for number in range(1000):
            parser.tell(str(number))
