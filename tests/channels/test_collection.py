"""Ends that are collected, systems that stop, interpreters that exit."""

from __future__ import annotations

import asyncio
import gc
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from callboard import DeadLetter
from callboard.channels import ChannelClosed, Receiver, Selection, Sender, Task, channel
from callboard.testing import ManualSystem
from tests.channels.users import left_in
from tests.channels.whole_programs import run
from tests.waiting import until


@pytest.mark.parametrize("capacity", [0, 1, 3])
def test_an_end_that_is_collected_closes_without_a_warning(capacity: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sender, receiver = channel(capacity)
        for number in range(capacity):
            assert sender.send_nowait(number)
        del sender
        assert left_in(receiver) == list(range(capacity))
        with pytest.raises(ChannelClosed, match="all senders have ended"):
            receiver.receive_nowait()

        sender, receiver = channel(capacity)
        del receiver
        with pytest.raises(ChannelClosed, match="all receivers have ended"):
            sender.send_nowait(1)


def is_collected(gone: weakref.ref[Any]) -> bool:
    """Collect until a value is gone: a collection does nothing while another thread's goes on."""
    until(lambda: gc.collect() >= 0 and gone() is None, "the value is collected", 30)
    return True


class Value:
    """A value that can be watched."""


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("capacity", [1, 3])
def test_values_go_with_their_channel(capacity: int, order: tuple[int, int]) -> None:
    ends: list[Any] = list(channel(capacity))
    value = Value()
    gone = weakref.ref(value)
    assert ends[0].send_nowait(value)
    del value
    for index in order:
        ends[index] = None
    assert gone() is None


def test_a_channel_in_a_circle_is_collected() -> None:
    sender, receiver = channel(3)
    value: Any = Value()
    value.ends = sender, receiver, Selection([sender, receiver])
    gone = weakref.ref(value)
    del sender, receiver, value
    assert is_collected(gone)


def selected(sender: Sender[Any], receiver: Receiver[Any]) -> Any:
    return Selection([sender, receiver])


LEADS_BACK: dict[str, Callable[[Sender[Any], Receiver[Any]], Any]] = {
    "its sender": lambda sender, _: sender,
    "its receiver": lambda _, receiver: receiver,
    "a clone": lambda sender, _: sender.clone(),
    "a closure": lambda sender, _: lambda: sender,
    "a selection": selected,
    "an iteration": lambda _, receiver: receiver.__aiter__(),
    "an end that was handed on": lambda _, receiver: receiver.release(),
    "another value": lambda sender, _: [sender.send_nowait("another value"), sender],
}


@pytest.mark.parametrize("way", list(LEADS_BACK))
@pytest.mark.parametrize("capacity", [2, 3])
def test_a_value_that_leads_to_its_own_channel_is_collected(way: str, capacity: int) -> None:
    sender, receiver = channel(capacity)
    value: Any = Value()
    value.way = LEADS_BACK[way](sender, receiver)
    gone = weakref.ref(value)
    assert sender.send_nowait(value)
    del value
    gc.collect()
    assert gone() is not None
    del sender, receiver
    assert is_collected(gone)


def test_values_that_lead_from_channel_to_channel_are_collected() -> None:
    pairs = [channel(1) for _ in range(3)]
    value = Value()
    gone = weakref.ref(value)
    for index, (sender, _) in enumerate(pairs):
        assert sender.send_nowait((value, pairs[index - 1]))
    del pairs, sender, value, _
    assert is_collected(gone)


async def test_an_offer_that_leads_to_its_own_channel_is_collected() -> None:
    complaints: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, about: complaints.append(about["message"]))
    sender, receiver = channel(0)
    value: Any = Value()
    value.ends = sender, receiver
    gone = weakref.ref(value)
    sending = asyncio.ensure_future(sender.send(value))
    await asyncio.sleep(0)
    del sender, receiver, value, sending
    assert is_collected(gone)
    assert complaints == ["Task was destroyed but it is pending!"]


def test_the_collector_leaves_values_on_their_way() -> None:
    """It runs all the time, while two threads use a channel that the values lead to."""
    sender, receiver = channel(2)

    def send() -> None:
        for number in range(300):
            sender.put([number, sender], 30.0)
        sender.close()

    threshold = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        thread = threading.Thread(target=send)
        thread.start()
        received = [number for number, _ in receiver]
        thread.join(30.0)
    finally:
        gc.set_threshold(*threshold)
    assert received == list(range(300))


def test_a_selection_in_a_circle_is_collected() -> None:
    sender, receiver = channel(3)
    holder: Any = Value()
    holder.selection, holder.itself = Selection([receiver]), holder
    gone = weakref.ref(holder)
    del holder
    assert is_collected(gone)
    assert sender.send_nowait(1)
    assert receiver.get() == 1


class Uses(Task):
    def __init__(self, *ends: Any) -> None:
        self.ends = ends

    async def run(self) -> None:
        receiver, gate = self.ends
        await receiver.receive()
        await gate.receive()


@pytest.mark.parametrize(
    ("way", "reason"),
    [
        ("stop", "receiver stopped"),
        ("end", "receiver stopped"),
        ("cancel", "channel cancelled"),
        ("system", "receiver stopped"),
    ],
)
def test_values_never_received_are_dead_letters(way: str, reason: str) -> None:
    letters: list[DeadLetter] = []
    with ManualSystem() as system:
        system.dead_letters.subscribe(letters.append)
        sender, receiver = channel(5)
        gate, gates_receiver = channel(1)
        for number in range(4):
            assert sender.send_nowait(number)
        task = system.spawn(Uses, receiver, gates_receiver)
        del receiver, gates_receiver
        system.run_until_idle()
        if way == "stop":
            task.stop()
        elif way == "end":
            gate.send_nowait("end")
        elif way == "cancel":
            sender.cancel()
        if way != "system":
            system.run_until_idle()
    assert [letter.message for letter in letters] == [1, 2, 3]
    assert {letter.reason for letter in letters} == {reason}
    assert system.dead_letters.reasons == {reason: 3}


def test_the_interpreter_exits_while_threads_and_tasks_wait() -> None:
    assert (
        run("""
        class Waits(Task):
            def __init__(self, end): self.end = end
            async def run(self): await self.end.receive()
        ends = [channel(1) for _ in range(4)]
        threading.Thread(target=ends[0][1].get, daemon=True).start()
        ends[1][0].send_nowait(1)
        ends[1][0].release()
        threading.Thread(target=ends[1][0].put, args=(2,), daemon=True).start()
        system = ActorSystem()
        system.spawn(Waits, ends[2][1])
        system.spawn(Waits, ends[3][1], event_loop=True)
        system.drain(30)
        print("end")
    """)
        == "end\n"
    )


def test_a_closed_event_loop_leaves_the_channel_usable() -> None:
    assert (
        run("""
        sender, receiver = channel(1)
        async def main():
            waiting = asyncio.ensure_future(receiver.receive())
            await asyncio.sleep(0)
        asyncio.run(main())
        sender.put("value")
        print(receiver.get(30))
    """)
        == "value\n"
    )
