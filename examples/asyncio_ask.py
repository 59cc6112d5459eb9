"""Ask actors from asyncio, and let an actor wait in the middle of a message.

Prints:

    Lima: 21 degrees
    Oslo: 4 degrees
    Atlantis: KeyError('Atlantis')
"""

import asyncio

from callboard import Actor, ActorRef, ActorSystem, Supervision


class Thermometers(Actor[str]):
    def __init__(self) -> None:
        self.degrees = {"Lima": 21, "Oslo": 4}

    def receive(self, city: str) -> int:
        return self.degrees[city]


class Reporter(Actor[str]):
    def __init__(self, thermometers: ActorRef[str]) -> None:
        self.thermometers = thermometers

    async def receive(self, city: str) -> str:
        degrees = await self.thermometers.ask(city)  # its worker runs other actors meanwhile
        return f"{city}: {degrees} degrees"


async def main() -> None:
    async with ActorSystem() as system:
        # A failed question gets the handler's exception; resume keeps the actors alive after it.
        thermometers = system.spawn(Thermometers, supervision=Supervision("resume"))
        reporter = system.spawn(Reporter, thermometers, supervision=Supervision("resume"))
        cities = ["Lima", "Oslo", "Atlantis"]
        answers = await asyncio.gather(*map(reporter.ask, cities), return_exceptions=True)
        for city, answer in zip(cities, answers, strict=True):
            print(answer if isinstance(answer, str) else f"{city}: {answer!r}")


if __name__ == "__main__":
    asyncio.run(main())
