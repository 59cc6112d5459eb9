"""Select: one task waits for any of many channels, one of which gets a value in each round.

    selection   callboard's `Selection`, which the channels joined once
    once        callboard's `select` over all of them, each time anew
    found       a `Selection` again; a round's value is there before the task looks
    merged      what a library without `select` can do: for each channel a task that sends its
                values on into one; `by=` says which library
    tasks       `asyncio.wait` for the tasks that each wait for a queue's next value
    chanio      chanio's `select`, on anyio

The task that sends a value waits until that value has arrived before it sends the next, over a
channel of its own. So a round is half a ping-pong, and a select. Measured is from when the channels
are registered.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from channels.libraries import LIBRARIES, Anyio, Callboard, Library, Planned
from channels.parts import Part, Receive, Send
from savina.result import Result
from usage import Watch


def run(
    n: int, *, way: str = "selection", by: str = "asyncio", channels: int = 10, **options: Any
) -> Result:
    library, parts, beside = WAYS[way](by, channels, scattered(n, channels), options)
    _, (costs, right) = library.play(parts, beside)
    return Result(n, **costs, got=[right, library.lost], want=[n, 0])


def scattered(rounds: int, channels: int) -> list[int]:
    """Say which channel each round is for."""
    state, places = 2, []
    for _ in range(rounds):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        places.append((state >> 8) % channels)
    return places


class Feeder(Part):
    def __init__(self, sends: Sequence[Send], places: Sequence[int], arrived: Receive) -> None:
        self.sends = sends
        self.places = places
        self.arrived = arrived

    async def run(self) -> None:
        sends, arrived = self.sends, self.arrived
        for place in self.places:
            await sends[place](place)
            await arrived()


class Chooser(Part):
    """Take a value from whichever channel has one, and tell the feeder that it has arrived."""

    def __init__(self, channels: Any, places: Sequence[int], arrived: Send) -> None:
        self.channels = channels
        self.places = places
        self.arrived = arrived

    def end(self, watch: Watch, right: int) -> None:
        self.done((watch.stop(), right))


# --- callboard ------------------------------------------------------------------------------------


class BySelection(Chooser):
    async def run(self) -> None:
        from callboard.channels import Selection

        ready, arrived = Selection(self.channels).ready, self.arrived
        watch, right = Watch(), 0
        for place in self.places:
            receiver = await ready()
            right += receiver.receive_nowait() == place
            await arrived(place)
        self.end(watch, right)


class BySelect(Chooser):
    async def run(self) -> None:
        from callboard.channels import select

        receivers, arrived = self.channels, self.arrived
        watch, right = Watch(), 0
        for place in self.places:
            receiver = await select(receivers)
            right += receiver.receive_nowait() == place
            await arrived(place)
        self.end(watch, right)


class Finder(Chooser):
    """Send the values, too."""

    async def run(self) -> None:
        from callboard.channels import Selection

        ready = Selection([receiver for _, receiver in self.channels]).ready
        senders = [sender for sender, _ in self.channels]
        watch, right = Watch(), 0
        for place in self.places:
            senders[place].send_nowait(place)
            receiver = await ready()
            right += receiver.receive_nowait() == place
        self.end(watch, right)


Played = tuple[Library, list[Planned], list[Planned]]


def by_selecting(
    chooser: type[Chooser], channels: int, places: list[int], options: dict[str, Any]
) -> Played:
    library = Callboard(**options)
    ends = [library.ends(1) for _ in range(channels)]
    if chooser is Finder:
        return library, [(Finder, ends, places, None)], []
    tell, arrived = library.channel(1)
    sends = [sender.send for sender, _ in ends]
    receivers = [receiver for _, receiver in ends]
    return library, [(Feeder, sends, places, arrived), (chooser, receivers, places, tell)], []


# --- other libraries ------------------------------------------------------------------------------


class Forwarder(Part):
    def __init__(self, receive: Receive, send: Send) -> None:
        self.receive = receive
        self.send = send

    async def run(self) -> None:
        receive, send = self.receive, self.send
        while True:
            await send(await receive())


class FromMerged(Chooser):
    async def run(self) -> None:
        receive, arrived = self.channels, self.arrived
        watch, right = Watch(), 0
        for place in self.places:
            right += await receive() == place
            await arrived(place)
        self.end(watch, right)


def by_merging(by: str, channels: int, places: list[int], options: dict[str, Any]) -> Played:
    library = LIBRARIES[by](**options)
    tell, arrived = library.channel(1)
    merge, merged = library.channel(1)
    ends = [library.channel(1) for _ in range(channels)]
    sends = [send for send, _ in ends]
    parts = [(Feeder, sends, places, arrived), (FromMerged, merged, places, tell)]
    return library, parts, [(Forwarder, receive, merge) for _, receive in ends]


class ByTasks(Chooser):
    async def run(self) -> None:
        arrived, start = self.arrived, asyncio.get_running_loop().create_task
        waiting = {start(receive()): receive for receive in self.channels}
        watch, right = Watch(), 0
        for place in self.places:
            ready, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in ready:
                receive = waiting.pop(task)
                right += task.result() == place
                waiting[start(receive())] = receive
            await arrived(place)
        self.end(watch, right)
        for task in waiting:
            task.cancel()


def by_tasks(by: str, channels: int, places: list[int], options: dict[str, Any]) -> Played:
    library = LIBRARIES[by](**options)
    tell, arrived = library.channel(1)
    ends = [library.channel(1) for _ in range(channels)]
    sends, receives = [send for send, _ in ends], [receive for _, receive in ends]
    return library, [(Feeder, sends, places, arrived), (ByTasks, receives, places, tell)], []


class ByChanio(Chooser):
    async def run(self) -> None:
        import chanio

        channels, arrived = self.channels, self.arrived
        watch, right = Watch(), 0
        for place in self.places:
            value, _ = await chanio.select(*channels)
            right += value == place
            await arrived(place)
        self.end(watch, right)


def by_chanio(by: str, channels: int, places: list[int], options: dict[str, Any]) -> Played:
    import chanio

    library = Anyio()
    tell, arrived = library.channel(1)
    made: list[Any] = [chanio.Channel(1) for _ in range(channels)]
    sends = [each.send for each in made]
    return library, [(Feeder, sends, places, arrived), (ByChanio, made, places, tell)], []


def ours(chooser: type[Chooser]) -> Callable[..., Played]:
    return lambda by, *arguments: by_selecting(chooser, *arguments)


WAYS: dict[str, Callable[..., Played]] = {
    "selection": ours(BySelection),
    "once": ours(BySelect),
    "found": ours(Finder),
    "merged": by_merging,
    "tasks": by_tasks,
    "chanio": by_chanio,
}
