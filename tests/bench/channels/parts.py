"""The work of the tasks in benchmarks, in terms that every library has.

A part is given the ends of its channels as functions: `send(value)` and `receive()`. A task awaits
them in `run()`. A thread calls them in `block()`, and they block. The part that has the answer
hands it to `done`.
"""

from collections.abc import Callable, Sequence
from typing import Any

Send = Callable[[Any], Any]
Receive = Callable[[], Any]


class Part:
    done: Callable[[Any], Any]  # each library supplies its own

    async def run(self) -> None:
        raise NotImplementedError

    def block(self) -> None:
        raise NotImplementedError


class Producer(Part):
    def __init__(self, send: Send, values: Sequence[int]) -> None:
        self.send = send
        self.values = values

    async def run(self) -> None:
        send = self.send
        for value in self.values:
            await send(value)

    def block(self) -> None:
        send = self.send
        for value in self.values:
            send(value)


class Stage(Part):
    """Add 1 to each value on its way."""

    def __init__(self, receive: Receive, send: Send, count: int) -> None:
        self.receive = receive
        self.send = send
        self.count = count

    async def run(self) -> None:
        receive, send = self.receive, self.send
        for _ in range(self.count):
            await send(await receive() + 1)

    def block(self) -> None:
        receive, send = self.receive, self.send
        for _ in range(self.count):
            send(receive() + 1)


class Consumer(Part):
    """Count the values that arrive in their order, each greater than it was by `added`."""

    def __init__(self, receive: Receive, count: int, added: int) -> None:
        self.receive = receive
        self.expected = range(added, added + count)

    async def run(self) -> None:
        receive, in_order = self.receive, 0
        for expected in self.expected:
            in_order += await receive() == expected
        self.done(in_order)

    def block(self) -> None:
        receive, in_order = self.receive, 0
        for expected in self.expected:
            in_order += receive() == expected
        self.done(in_order)


class Adder(Part):
    """Add up the values."""

    def __init__(self, receive: Receive, count: int) -> None:
        self.receive = receive
        self.count = count

    async def run(self) -> None:
        receive, total = self.receive, 0
        for _ in range(self.count):
            total += await receive()
        self.done(total)

    def block(self) -> None:
        receive, total = self.receive, 0
        for _ in range(self.count):
            total += receive()
        self.done(total)


class Player(Part):
    """Send a number to a stage, and send on what comes back."""

    def __init__(self, send: Send, receive: Receive, rounds: int) -> None:
        self.send = send
        self.receive = receive
        self.rounds = rounds

    async def run(self) -> None:
        send, receive, number = self.send, self.receive, 0
        for _ in range(self.rounds):
            await send(number)
            number = await receive()
        self.done(number)

    def block(self) -> None:
        send, receive, number = self.send, self.receive, 0
        for _ in range(self.rounds):
            send(number)
            number = receive()
        self.done(number)
