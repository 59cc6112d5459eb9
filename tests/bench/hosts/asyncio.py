"""asyncio: a task for each actor, over an `asyncio.Queue`; the main program runs the loop."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from hosts import base
from hosts.base import TIMEOUT, Behaviour, Question, Ref

STOP = object()


class TaskActor:
    """A behaviour, its queue and the coroutine between them."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        self.queue: asyncio.Queue[Any] = asyncio.Queue()
        self.tell = self.queue.put_nowait
        behaviour.stop = self.stop

    async def run(self) -> None:
        get, receive = self.queue.get, self.behaviour.receive
        while (message := await get()) is not STOP:
            if type(message) is Question:
                message.answer(receive(message.message))
            else:
                receive(message)

    def stop(self) -> None:
        self.tell(STOP)


class Host(base.Host):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.tasks: set[asyncio.Task[None]] = set()
        self.results: asyncio.Queue[Any] = asyncio.Queue()
        self.done = self.results.put_nowait

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run the loop until `coroutine` has ended; return what it returns."""
        return self.loop.run_until_complete(asyncio.wait_for(coroutine, TIMEOUT))

    def spawn(self, behaviour: type[Behaviour], *args: Any) -> Ref:
        actor = TaskActor(behaviour(*args))
        task = self.loop.create_task(actor.run())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return actor

    def wait(self, count: int = 1) -> list[Any]:
        async def take() -> list[Any]:
            return [await self.results.get() for _ in range(count)]

        values: list[Any] = self.run(take())
        return values

    def ask(self, ref: Ref, message: Any) -> Any:
        async def answer() -> Any:
            future = self.loop.create_future()
            ref.tell(Question(message, future.set_result))
            return await future

        return self.run(answer())

    def close(self) -> None:
        async def cancel() -> None:
            for task in self.tasks:
                task.cancel()
            await asyncio.gather(*self.tasks, return_exceptions=True)

        self.run(cancel())
        self.loop.close()
