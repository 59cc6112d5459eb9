"""An agent with tools as a net. Its model follows a script, so no network is needed.

`think` stands for the model. It asks for two tools, which work at the same time. A join brings
together what they find, and `think` goes on.

Prints:

    ann: It is 4 degrees in Oslo, and you stay for 12 days. Pack a coat.
    bob: I have heard nothing of Atlantis.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from callboard import ActorSystem
from callboard.nets import box, join, star

WEATHER = {"Oslo": 4}
DAYS = {"ann": 12}
PLACES = {"ann": "Oslo", "bob": "Atlantis"}


@box("(user, talk) -> (user, talk, city) | (user, guest) | (user, answer)")
async def think(user: str, talk: list[str]) -> AsyncIterator[dict[str, Any]]:
    if len(talk) > 1:
        yield {"user": user, "answer": f"{' '.join(talk[1:])} Pack a coat."}
    elif talk[0] not in WEATHER:
        yield {"user": user, "answer": f"I have heard nothing of {talk[0]}."}
    else:
        yield {"user": user, "talk": talk, "city": talk[0]}
        yield {"user": user, "guest": user}


@box("(city) -> (degrees)", timeout=5.0, retries=2)
async def weather(city: str) -> str:
    await asyncio.sleep(0.01)  # of a call
    return f"It is {WEATHER[city]} degrees in {city},"


@box("(guest) -> (stay)", timeout=5.0, retries=2)
async def calendar(guest: str) -> str:
    return f"and you stay for {DAYS[guest]} days."


@box("(talk, degrees, stay) -> (talk)")
def remember(talk: list[str], degrees: str, stay: str) -> list[str]:
    return [*talk, degrees, stay]


tools = (weather | calendar) >> join(on="user", of=("degrees", "stay")) >> remember
agent = star(think | tools, "{answer}", limit=20)

if __name__ == "__main__":
    with ActorSystem() as system:
        run = system.run(agent)
        run.send({"user": user, "talk": [city]} for user, city in PLACES.items())
        for record in sorted(run.finish(), key=lambda record: record["user"]):
            print(f"{record['user']}: {record['answer']}")
