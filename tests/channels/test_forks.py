"""Channels in a forked child: the child has copies, which nobody else uses."""

import os

import pytest

from tests.channels.whole_programs import run

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


def test_a_forked_child_has_a_copy_of_the_channel() -> None:
    """What is in a channel at the fork is in both; afterwards they are apart."""
    assert (
        run("""
        warnings.simplefilter("ignore", DeprecationWarning)
        sender, receiver = channel(3)
        sender.put(1)
        child = os.fork()
        if child == 0:
            ok = receiver.get(30) == 1 and sender.send_nowait(2) and receiver.get(30) == 2
            try:
                receiver.get(0)
            except ChannelTimeout:
                os._exit(0 if ok else 1)
            os._exit(2)
        print(os.waitpid(child, 0)[1], receiver.get(30), len(receiver))
    """)
        == "0 1 0\n"
    )


def test_a_forked_child_cannot_use_the_channels_of_actors() -> None:
    """Tasks wait for values, for room and on an event loop meanwhile, and the parent goes on."""
    assert (
        run("""
        warnings.simplefilter("ignore", DeprecationWarning)

        class Takes(Task):
            def __init__(self, end): self.end = end
            async def run(self):
                async for value in self.end: print(f"taken {value}\\n", end="", flush=True)

        class TakesInTime(Takes):
            async def run(self):
                ready = await select([self.end], timeout=60)
                print(f"taken {await ready.receive(60)}\\n", end="", flush=True)

        class Sends(Task):
            def __init__(self, end): self.end = end
            async def run(self):
                for number in range(3): await self.end.send(number)

        system = ActorSystem()
        to_task, of_task = channel(1)
        to_loop, of_loop = channel(0)
        to_own, of_own = channel(1)
        to_late, of_late = channel(1)
        of_sends, from_sends = channel(1)
        system.spawn(Takes, of_task)
        system.spawn(Takes, of_loop, event_loop=True)
        system.spawn(TakesInTime, of_own, event_loop=True)
        system.spawn(TakesInTime, of_late)
        other = to_task.clone()
        selection = Selection([from_sends])
        system.drain(60)
        assert selection.ready_nowait() is None
        system.spawn(Sends, of_sends)
        while not len(from_sends): os.sched_yield()
        idle = Selection([to_loop])  # registered in the parent, ready in the child
        child = os.fork()
        if child == 0:
            uses = [
                lambda: to_task.send_nowait(1), lambda: to_task.put(1), lambda: other.put(1),
                lambda: to_loop.put(1), lambda: to_loop.send_nowait(1), lambda: to_own.put(1),
                lambda: to_late.put(1, timeout=60), from_sends.get, lambda: list(from_sends),
                from_sends.receive_nowait, from_sends.peek, lambda: from_sends.get_many(2),
                to_task.clone,
            ]
            for use in uses:
                try:
                    use()
                except ForkedSystem as error:
                    assert "live in the process that made their system" in str(error), error
                else:
                    os._exit(1)
            async def main():
                try:
                    await to_task.send(1)
                except ForkedSystem:
                    return await select([from_sends])
            assert asyncio.run(main()) is from_sends
            assert selection.wait(60) is from_sends and idle.wait(60) is to_loop
            assert to_task._is_closed and from_sends._is_closed
            sender, receiver = channel(1)  # its own
            sender.put(1)
            assert receiver.get(60) == 1
            with ActorSystem() as own:
                own.spawn(Sends, sender.release())
                assert [receiver.get(60) for _ in range(3)] == [0, 1, 2]
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        for sender in to_task, to_loop, to_own, to_late:
            sender.put("value", 60)
        assert [from_sends.get(60) for _ in range(3)] == [0, 1, 2]
        to_task.close(), to_loop.close(), other.close()
        system.drain(60)
        system.stop()
    """)
        == 4 * "taken value\n"
    )


@pytest.mark.parametrize("capacity", [0, 1])
def test_a_fork_leaves_threads_and_event_loops_that_wait_alone(capacity: int) -> None:
    """In the child they do not exist. Their ends are theirs there, too."""
    assert (
        run(f"""
        warnings.simplefilter("ignore", DeprecationWarning)
        to_thread, of_thread = channel({capacity})
        to_loop, of_loop = channel({capacity})
        waits = threading.Barrier(3)

        def thread():
            of_thread.receive_nowait(None)
            waits.wait(60)
            print("thread", of_thread.get(60), flush=True)

        async def main():
            asyncio.get_running_loop().call_soon(waits.wait, 60)
            print("loop", await of_loop.receive(), flush=True)

        threads = [threading.Thread(target=thread)]
        threads.append(threading.Thread(target=lambda: asyncio.run(main())))
        for one in threads: one.start()
        waits.wait(60)
        child = os.fork()
        if child == 0:
            for sender, receiver in (to_thread, of_thread), (to_loop, of_loop):
                try:
                    receiver.get(60)
                except ChannelOwnershipError:
                    pass
                else:
                    os._exit(1)
                sender.send_nowait("of the child")
                try:
                    sender.put("too much", 0)
                except ChannelTimeout:
                    pass
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        to_thread.put("value", 60)
        threads[0].join(60)
        to_loop.put("value", 60)
        threads[1].join(60)
    """)
        == "thread value\nloop value\n"
    )
