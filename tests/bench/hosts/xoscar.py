"""xoscar: actors in one process on one event loop; what a behaviour sends is awaited after it."""

from collections.abc import Iterable
from typing import Any

import xoscar

from hosts import asyncio as asyncio_host
from hosts.base import Behaviour, Ref


class ActorRef:
    """Collects what is told; sending is a coroutine, and a behaviour cannot await."""

    __slots__ = ("actor", "outbox")

    def __init__(self, actor: Any, outbox: list[tuple[Any, Any]]) -> None:
        self.actor = actor
        self.outbox = outbox

    def tell(self, message: Any) -> None:
        self.outbox.append((self.actor, message))


class Host(asyncio_host.Host):
    def __init__(self) -> None:
        super().__init__()
        self.outbox: list[tuple[Any, Any]] = []
        self.pool = self.run(xoscar.create_actor_pool("127.0.0.1", n_process=0))

    def derive(self, behaviour: type[Behaviour]) -> type[Any]:
        host = self

        class XoscarActor(xoscar.Actor):  # type: ignore[misc]
            def __init__(self, *args: Any) -> None:
                super().__init__()
                self.behaviour = behaviour(*args)
                self.behaviour.stop = self.stop
                self.stopped = False

            async def receive(self, message: Any) -> Any:
                answer = self.behaviour.receive(message)
                await host.flush()
                if self.stopped:
                    await xoscar.destroy_actor(self.ref())
                return answer

            def stop(self) -> None:
                self.stopped = True

        return XoscarActor

    async def flush(self) -> None:
        """Send what the behaviour that has just run told others."""
        sends = self.outbox.copy()
        self.outbox.clear()
        for actor, message in sends:
            await actor.receive.tell(message)

    async def create(self, behaviour: type[Behaviour], args: tuple[Any, ...]) -> ActorRef:
        cls, address = self.actor_class(behaviour), self.pool.external_address
        return ActorRef(await xoscar.create_actor(cls, *args, address=address), self.outbox)

    def spawn(self, behaviour: type[Behaviour], *args: Any) -> Ref:
        ref: ActorRef = self.run(self.create(behaviour, args))
        return ref

    def spawn_each(self, behaviour: type[Behaviour], messages: Iterable[Any], *args: Any) -> None:
        async def spawn_all() -> None:
            for message in messages:
                await (await self.create(behaviour, args)).actor.receive.tell(message)

        self.run(spawn_all())

    def feed(self, ref: Any, messages: Iterable[Any]) -> None:
        self.feed_all([ref], messages)

    def feed_all(self, refs: Iterable[Any], messages: Iterable[Any]) -> None:
        async def send_all() -> None:
            actors = [ref.actor for ref in refs]
            for message in messages:
                for actor in actors:
                    await actor.receive.tell(message)

        self.run(send_all())

    def ask(self, ref: Any, message: Any) -> Any:
        return self.run(ref.actor.receive(message))

    def close(self) -> None:
        self.run(self.pool.stop())
        super().close()
