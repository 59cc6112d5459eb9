"""A plain thread sends a number to a task and waits for the answer, n times.

    callboard   the thread uses its ends with `put` and `get`, which block
    asyncio     the thread calls the event loop with `call_soon_threadsafe`, and waits at a queue
    culsans     its queue has an end of either kind

The event loop of the last two has a thread of its own.
"""

import asyncio
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any

from channels.libraries import TIMEOUT, Callboard
from channels.parts import Player, Receive, Send, Stage
from savina.result import Result
from usage import Watch

Played = tuple[dict[str, float], Any]


def run(n: int, *, by: str = "callboard") -> Result:
    costs, answer = BY[by](n)
    return Result(n, **costs, got=answer, want=n)


def play(send: Send, receive: Receive, rounds: int) -> Played:
    """Play from this thread."""
    answers: list[Any] = []
    player = Player(send, receive, rounds)
    player.done = answers.append
    watch = Watch()
    player.block()
    return watch.stop(), answers.pop()


def by_callboard(rounds: int) -> Played:
    from callboard import ActorSystem

    library = Callboard()
    to_task, source = library.ends(1)
    sink, from_task = library.ends(1)
    with ActorSystem(workers=1) as system:
        stage = library.derive(Stage, lambda _: None)
        system.spawn(stage, source.receive, sink.send, rounds)
        return play(to_task.put, from_task.get, rounds)


def by_asyncio(rounds: int) -> Played:
    answers: SimpleQueue[int] = SimpleQueue()
    started: SimpleQueue[Any] = SimpleQueue()

    async def answer(number: int) -> None:
        answers.put(number)

    async def main() -> None:
        queue: asyncio.Queue[int] = asyncio.Queue(1)
        loop = asyncio.get_running_loop()
        started.put(lambda number: loop.call_soon_threadsafe(queue.put_nowait, number))
        await Stage(queue.get, answer, rounds).run()

    thread = Thread(target=lambda: asyncio.run(main()))
    thread.start()
    played = play(started.get(timeout=TIMEOUT), answers.get, rounds)
    thread.join(TIMEOUT)
    return played


def by_culsans(rounds: int) -> Played:
    import culsans

    to_task: Any = culsans.Queue(1)
    from_task: Any = culsans.Queue(1)
    stage = Stage(to_task.async_q.get, from_task.async_q.put, rounds)
    thread = Thread(target=lambda: asyncio.run(stage.run()))
    thread.start()
    played = play(to_task.sync_q.put, from_task.sync_q.get, rounds)
    thread.join(TIMEOUT)
    return played


BY: dict[str, Callable[[int], Played]] = {
    "callboard": by_callboard,
    "asyncio": by_asyncio,
    "culsans": by_culsans,
}
