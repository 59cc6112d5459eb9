"""Channels and tasks of each library, used as its authors intend.

A task of asyncio or anyio is a coroutine on one event loop, trio's likewise; callboard derives a
class from the part and its own `Task`, so that nothing stands between. A thread has the queue's own
`put` and `get`; a `SimpleQueue` has no capacity, so its senders never wait.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Queue, SimpleQueue
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

from callboard.observing import record_trace
from channels.parts import Part, Receive, Send
from savina.result import Result
from usage import Watch

TIMEOUT = 300.0  # seconds; a lost value ends a run with an error, not with a hang

Planned = tuple[Any, ...]  # the class of a part, and its arguments
Costs = dict[str, float]
Answer = Callable[[Any], Any]


class Library:
    lost = 0  # values that became dead letters

    def channel(self, capacity: int) -> tuple[Send, Receive]:
        raise NotImplementedError

    def fan_in(self, capacity: int, producers: int) -> tuple[list[Send], Receive]:
        """Make a channel that several producers share."""
        send, receive = self.channel(capacity)
        return [send] * producers, receive

    def play(self, parts: Sequence[Planned], beside: Sequence[Planned] = ()) -> tuple[Costs, Any]:
        """Run the parts until all have ended; return what that took, and the answer.

        Parts that run `beside` them have started before, and are cancelled at the end.
        """
        raise NotImplementedError

    def result(self, operations: int, parts: Sequence[Planned], want: Any) -> Result:
        costs, answer = self.play(parts)
        return Result(operations, **costs, got=[answer, self.lost], want=[want, 0])


def made(planned: Planned, done: Answer) -> Part:
    cls, *arguments = planned
    part: Part = cls(*arguments)
    part.done = done
    return part


class Asyncio(Library):
    def channel(self, capacity: int) -> tuple[Send, Receive]:
        queue: asyncio.Queue[Any] = asyncio.Queue(capacity)
        return queue.put, queue.get

    def play(self, parts: Sequence[Planned], beside: Sequence[Planned] = ()) -> tuple[Costs, Any]:
        return asyncio.run(self.main(parts, beside))

    async def main(self, parts: Sequence[Planned], beside: Sequence[Planned]) -> tuple[Costs, Any]:
        answers: list[Any] = []
        start = asyncio.get_running_loop().create_task
        others = [start(made(each, answers.append).run()) for each in beside]
        await asyncio.sleep(0)
        watch = Watch()
        async with asyncio.TaskGroup() as group:
            for each in parts:
                group.create_task(made(each, answers.append).run())
        costs = watch.stop()
        for other in others:
            other.cancel()
        return costs, answers.pop()


class Trio(Library):
    def __init__(self) -> None:
        import trio

        self.begin: Any = trio.run
        self.group: Any = trio.open_nursery
        self.sleep: Any = trio.sleep
        self.ends: Any = trio.open_memory_channel

    def channel(self, capacity: int) -> tuple[Send, Receive]:
        sender, receiver = self.ends(capacity)
        return sender.send, receiver.receive

    def play(self, parts: Sequence[Planned], beside: Sequence[Planned] = ()) -> tuple[Costs, Any]:
        played: tuple[Costs, Any] = self.begin(self.main, parts, beside)
        return played

    async def main(self, parts: Sequence[Planned], beside: Sequence[Planned]) -> tuple[Costs, Any]:
        answers: list[Any] = []
        async with self.group() as others:
            for each in beside:
                others.start_soon(made(each, answers.append).run)
            await self.sleep(0)
            watch = Watch()
            async with self.group() as group:
                for each in parts:
                    group.start_soon(made(each, answers.append).run)
            costs = watch.stop()
            others.cancel_scope.cancel()
        return costs, answers.pop()


class Anyio(Trio):
    """anyio on asyncio's event loop, which is its default."""

    def __init__(self) -> None:
        import anyio

        self.begin = anyio.run
        self.group = anyio.create_task_group
        self.sleep = anyio.sleep
        self.ends = anyio.create_memory_object_stream


class Culsans(Asyncio):
    def __init__(self) -> None:
        import culsans

        self.queue: Any = culsans.Queue

    def channel(self, capacity: int) -> tuple[Send, Receive]:
        end = self.queue(capacity).async_q
        return end.put, end.get


class Threads(Library):
    def channel(self, capacity: int) -> tuple[Send, Receive]:
        queue: SimpleQueue[Any] = SimpleQueue()
        return queue.put, queue.get

    def play(self, parts: Sequence[Planned], beside: Sequence[Planned] = ()) -> tuple[Costs, Any]:
        answers: SimpleQueue[Any] = SimpleQueue()
        watch = Watch()
        for each in (*beside, *parts):
            Thread(target=made(each, answers.put).block, daemon=True).start()
        answer = answers.get(timeout=TIMEOUT)
        return watch.stop(), answer


class BoundedThreads(Threads):
    def channel(self, capacity: int) -> tuple[Send, Receive]:
        queue: Queue[Any] = Queue(capacity)
        return queue.put, queue.get


class Callboard(Library):
    """A system of one worker if nothing is said; the options are its constructor's.

    Tasks that are `dedicated` have a thread each. With `logs` all that they do is traced.
    """

    def __init__(self, dedicated: bool = False, logs: bool = False, **options: Any) -> None:
        from callboard.channels import Task, channel

        self.task: Any = Task
        self.ends: Any = channel
        self.dedicated = dedicated
        self.logs = logs
        self.options = {"workers": 1, **options}

    def channel(self, capacity: int) -> tuple[Send, Receive]:
        sender, receiver = self.ends(capacity)
        return sender.send, receiver.receive

    def fan_in(self, capacity: int, producers: int) -> tuple[list[Send], Receive]:
        sender, receiver = self.ends(capacity)
        senders = [sender, *(sender.clone() for _ in range(producers - 1))]
        return [each.send for each in senders], receiver.receive

    def play(self, parts: Sequence[Planned], beside: Sequence[Planned] = ()) -> tuple[Costs, Any]:
        from callboard import ActorSystem

        answers: SimpleQueue[Any] = SimpleQueue()
        with TemporaryDirectory() as folder, ActorSystem(**self.options) as system:
            if self.logs:
                record_trace(system, Path(folder, "run.perfetto-trace"))
            watch = Watch()
            for cls, *arguments in (*beside, *parts):
                derived = self.derive(cls, answers.put)
                system.spawn(derived, *arguments, dedicated=self.dedicated)
            answer = answers.get(timeout=TIMEOUT)
            costs = watch.stop()
            self.lost = system.dead_letters.count
        return costs, answer

    def derive(self, part: type[Part], done: Answer) -> Any:
        return type(part.__name__, (part, self.task), {"done": staticmethod(done)})


LIBRARIES: dict[str, Callable[..., Library]] = {
    "callboard": Callboard,
    "asyncio": Asyncio,
    "trio": Trio,
    "anyio": Anyio,
    "culsans": Culsans,
    "threads": Threads,
    "bounded_threads": BoundedThreads,
}
