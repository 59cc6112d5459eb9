"""Bad input gets a clear error, and nothing is lost."""

from __future__ import annotations

import asyncio
import copy
import pickle
import warnings
from typing import Any

import pytest

from callboard import Actor, ActorSystem, CallboardError, SpawnError
from callboard.channels import (
    ChannelClosed,
    ChannelOwnershipError,
    Receiver,
    Selection,
    Sender,
    Task,
    channel,
    select,
)
from callboard.testing import ManualSystem
from tests.channels.users import WAIT, in_thread, left_in


@pytest.mark.parametrize(
    "capacity", [True, False, 1.5, -1, "3", 2**70, 2**62, 2**40, None, [], b"1"]
)
def test_a_capacity_is_a_whole_number(capacity: Any) -> None:
    with pytest.raises(ValueError, match="a channel's capacity"):
        channel(capacity)


def test_on_deadlock_is_one_of_two_words() -> None:
    with pytest.raises(ValueError, match="on_deadlock"):
        channel(1, on_deadlock="wait")  # type: ignore[arg-type]


@pytest.mark.parametrize("timeout", [-1, "3", float("nan"), float("inf"), True, 2**70])
def test_a_timeout_is_a_number_of_seconds(timeout: Any) -> None:
    sender, receiver = channel(1)
    for operation in (
        lambda: sender.send(1, timeout),
        lambda: sender.put(1, timeout),
        lambda: receiver.receive(timeout),
        lambda: receiver.receive_many(1, timeout),
        lambda: receiver.get(timeout),
        lambda: receiver.get_many(1, timeout),
        lambda: select([receiver], timeout),
        lambda: Selection([receiver]).wait(timeout),
    ):
        with pytest.raises(ValueError, match="timeout must be a number of seconds"):
            operation()
    assert len(sender) == 0


@pytest.mark.parametrize("most", [0, -1, True, 1.0, "1", 2**70])
def test_a_number_of_values_is_1_or_more(most: Any) -> None:
    sender, receiver = channel(1)
    sender.send_nowait(1)
    with pytest.raises(ValueError, match="receive_many"):
        receiver.receive_many(most)
    assert receiver.get() == 1


def test_an_end_belongs_to_one_thread_at_a_time() -> None:
    sender, receiver = channel(3)
    assert sender.send_nowait(1)
    assert receiver.peek() == 1
    for operation in (
        lambda: sender.send_nowait(2),
        lambda: sender.put(2),
        sender.close,
        sender.cancel,
        receiver.receive_nowait,
        receiver.get,
        receiver.peek,
        receiver.close,
        receiver.cancel,
        lambda: Selection([receiver]),
        lambda: receiver.replace(channel(1)[1]),
        lambda: sender.replace(channel(1)[0]),
        lambda: asyncio.run(receive(receiver)),
    ):
        with pytest.raises(ChannelOwnershipError, match="until its user calls release"):
            in_thread(operation).result(WAIT)
    assert (receiver.receive_nowait(), sender.send_nowait(3)) == (1, True)


async def receive(receiver: Receiver[Any]) -> Any:
    return await receiver.receive()


async def test_an_end_with_a_waiting_user_cannot_be_released() -> None:
    sender, receiver = channel(1)
    waiting = asyncio.ensure_future(receive(receiver))
    await asyncio.sleep(0)
    with pytest.raises(ChannelOwnershipError, match="cannot be released while"):
        receiver.release()
    assert sender.send_nowait(1)
    assert await waiting == 1
    receiver.release()


class Sends(Task):
    def __init__(self, sender: Sender[int], notes: list[Any]) -> None:
        self.sink, self.notes = sender, notes

    async def run(self) -> None:
        try:
            await self.sink.send(1)
        except ChannelOwnershipError as error:
            self.notes.append(str(error))


def test_a_channel_belongs_to_one_system() -> None:
    sender, receiver = channel(3)
    notes: list[Any] = []
    with ManualSystem(name="one") as one, ManualSystem(name="other") as other:
        one.spawn(Sends, sender.clone(), notes)
        one.run_until_idle()
        with pytest.raises(
            ChannelOwnershipError, match=r"belongs to the actor system 'one'.*'other'"
        ):
            other.spawn(Sends, sender, notes)
        other.run_until_idle()
        assert notes == []
        assert left_in(receiver) == [1]


def test_two_tasks_cannot_use_one_end() -> None:
    sender, receiver = channel(3)
    notes: list[Any] = []
    with ManualSystem() as system:
        gate, gates_receiver = channel(0)

        class Keeps(Task):
            async def run(self) -> None:
                await sender.send(0)
                await gates_receiver.receive()

        system.spawn(Keeps)
        system.run_until_idle()
        with pytest.raises(ChannelOwnershipError, match="until its user calls release"):
            system.spawn(Sends, sender, notes)
        system.run_until_idle()
        assert notes == []
        assert receiver.receive_nowait() == 0
        gate.close()


def test_an_end_cannot_be_pickled_and_its_copy_is_the_same() -> None:
    for end in (*channel(1), *channel(0)):
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(end)
        assert copy.copy(end) is end
        assert copy.deepcopy([end])[0] is end
        assert end


@pytest.mark.parametrize("thing", [None, 3, "end", asyncio.Queue, object()])
def test_a_selection_wants_ends(thing: Any) -> None:
    _, receiver = channel(1)
    with pytest.raises(TypeError, match="expects senders and receivers"):
        select([receiver, thing])
    selection = Selection([receiver])
    with pytest.raises(TypeError, match="expects senders and receivers"):
        selection.add(thing)
    with pytest.raises(ChannelOwnershipError, match="already in the selection"):
        selection.add(receiver)
    with pytest.raises(KeyError):
        selection.remove(channel(1)[1])
    assert list(selection) == [receiver]


def test_a_selection_without_ends_is_refused() -> None:
    async def main() -> None:
        with pytest.raises(ValueError, match="without ends"):
            await select([])
        selection: Selection[Receiver[Any]] = Selection()
        assert [end async for end in selection] == []

    asyncio.run(main())
    with pytest.raises(ValueError, match="without ends"):
        Selection().wait()


async def test_an_operation_is_awaited_once() -> None:
    sender, receiver = channel(3)
    operation = sender.send(1)
    await operation
    with pytest.raises(RuntimeError, match="was already awaited"):
        await operation
    assert (receiver.receive_nowait(), len(receiver)) == (1, 0)

    taking = receiver.receive()
    waiting = asyncio.ensure_future(taking)
    await asyncio.sleep(0)
    with pytest.raises(RuntimeError, match="was already awaited"):
        await taking
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    with pytest.raises(RuntimeError, match="was already awaited"):
        await taking


def test_an_operation_that_is_not_awaited_does_nothing_and_warns() -> None:
    sender, receiver = channel(3)
    for operation in (
        lambda: sender.send(1),
        receiver.receive,
        lambda: receiver.receive_many(3),
        lambda: select([receiver]),
    ):
        with pytest.warns(RuntimeWarning, match="was never awaited"):
            operation()
    assert len(sender) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sender.put(1)
        assert receiver.get() == 1


def test_a_coroutine_needs_an_event_loop_to_wait() -> None:
    sender, receiver = channel(1)
    coroutine = receive(receiver)
    with pytest.raises(RuntimeError, match="no running event loop"):
        coroutine.send(None)
    assert sender.send_nowait(1)
    receiver.release()  # nobody waits
    assert receiver.get() == 1


class Blocks(Actor[Any]):
    def receive(self, work: Any) -> str:
        try:
            work()
        except CallboardError as error:
            return str(error)
        return "no error"


@pytest.mark.parametrize("event_loop", [False, True])
def test_a_worker_is_not_blocked(system: ActorSystem, event_loop: bool) -> None:
    sender, receiver = channel(1)
    other, _kept = channel(1)
    actor = system.spawn(Blocks, event_loop=event_loop)
    for name, work in {
        "put": lambda: sender.put(1),
        "get": receiver.get,
        "get_many": lambda: receiver.get_many(3),
        "wait": lambda: Selection([other]).wait(),
    }.items():
        answer = actor.ask(work).result(WAIT)
        assert answer.startswith(f"{name}() would block a worker"), answer
    assert (len(sender), sender.send_nowait(2), receiver.get()) == (0, True, 2)


def test_after_a_close_nothing_is_sent() -> None:
    sender, receiver = channel(3)
    sender.put(1)
    sender.close()
    for operation in (lambda: sender.send_nowait(2), lambda: sender.put(2), sender.clone):
        with pytest.raises(ChannelClosed, match="closed by its user"):
            operation()
    assert list(receiver) == [1]
    receiver.cancel()
    with pytest.raises(ChannelClosed):
        receiver.clone()


def test_an_end_that_took_anothers_place_is_not_used() -> None:
    sender, receiver = channel(1)
    other_sender, other_receiver = channel(1)
    sender.replace(other_sender)
    receiver.replace(other_receiver)
    for operation in (
        lambda: other_sender.send_nowait(1),
        other_sender.cancel,
        other_receiver.receive_nowait,
        other_receiver.cancel,
        lambda: sender.replace(other_sender),
        lambda: receiver.replace(other_receiver),
    ):
        with pytest.raises(ChannelOwnershipError, match="was given to replace"):
            operation()
    with pytest.raises(ChannelOwnershipError):
        sender.replace(sender)
    with pytest.raises(ChannelOwnershipError):
        receiver.replace(receiver)
    with pytest.raises(TypeError):
        sender.replace(receiver)  # type: ignore[arg-type]
    assert sender.send_nowait(1)
    assert receiver.get(WAIT) == 1


def test_a_task_has_a_coroutine_for_its_work(system: ActorSystem) -> None:
    class HasNoRun(Task):
        pass

    class IsNoCoroutine(Task):
        def run(self) -> None:  # type: ignore[override]
            pass

    with pytest.raises(SpawnError, match="run\\(\\) must be `async def run"):
        system.spawn(IsNoCoroutine)
    ref = system.spawn(HasNoRun)
    system.drain(WAIT)
    assert "no method `async def run" in dict(system.dead_letters.failures)[ref.path].summary
