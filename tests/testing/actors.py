"""Actors that tests of manual systems run."""

from __future__ import annotations

from callboard import Actor, ActorRef


class Sum(Actor[int]):
    def __init__(self) -> None:
        self.total = 0

    def receive(self, message: int) -> int:
        self.total += message
        return self.total


class Forward(Actor[object]):
    def __init__(self, to: ActorRef[object], times: int = 1) -> None:
        self.to = to
        self.times = times

    def receive(self, message: object) -> None:
        self.to.tell_many([message] * self.times)


class Patient(Actor[float]):
    async def receive(self, message: float) -> str:
        await self.sleep(message)
        return f"waited {message:g} s"
