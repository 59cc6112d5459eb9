"""Tasks, which are actors that work on channels instead of messages."""

from __future__ import annotations

from collections.abc import AsyncIterable
from typing import TYPE_CHECKING, Any

from callboard._inside.life.unfinished import Checkpoint
from callboard.actor import Actor

if TYPE_CHECKING:
    from callboard._inside.sending.ref import ActorRef


class Task(Actor[Any]):
    """An actor whose work is one coroutine, `run()`. It ends when the coroutine does.

    A task is spawned, placed, supervised, watched and stopped like other actors, but takes no
    messages. When it ends, so do its channel ends: receivers close, and senders close, or fail if
    the task failed. Values that no other receiver can take become dead letters. After a restart, a
    new object runs with the same arguments, and the same ends.

    LPEL's task (Prokesch 2011, section 4.3): the worker runs it until it must wait, and then runs
    others.
    """

    __slots__ = ("sender",)  # of messages in other actors; a task may call an end that
    _callboard_runs = True

    async def run(self) -> object:
        """Do the task's work on a worker's thread; with `event_loop=True`, on the event loop's."""
        raise NotImplementedError(f"{type(self).__qualname__} has no method `async def run(self)`")

    async def receive(self, message: Any) -> object:
        """Never called: a task takes no messages, and sending one raises TypeError."""
        raise AssertionError("unreachable")

    def checkpoint(self) -> Checkpoint:
        """Return an awaitable that lets other actors run. For tasks that work for a long time."""
        return Checkpoint()


class Piping(Task):
    """Tells an actor each value of a channel, until the channel or the actor ends.

    If the actor's mailbox makes its senders wait, this waits, and the channel becomes full.
    """

    __slots__ = ("_source", "_to")

    def __init__(self, source: AsyncIterable[Any], to: ActorRef[Any]) -> None:
        self._source = source
        self._to = to

    async def run(self) -> None:
        """Tell each value as it comes."""
        async for value in self._source:
            self._to.tell(value)
            if not self._to.is_alive:  # the receiver ends with this task
                return
