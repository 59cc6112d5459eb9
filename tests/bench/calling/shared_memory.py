"""A process that answers through iceoryx2: pickled messages in shared memory.

There is an event for each batch of messages. Both sides sleep until there is one.
"""

import ctypes
import multiprocessing
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import getpid
from typing import Any

ROOM = 1_024  # messages that wait on one side
LONGEST = 64  # bytes of one
WAIT = 60  # seconds for a message


class Side:
    """One side of two queues, each with an event that says that there is something."""

    def __init__(self, node: Any, name: str, sends: str, receives: str) -> None:
        import iceoryx2 as iox2

        def service(direction: str) -> Any:
            return node.service_builder(iox2.ServiceName.new(f"{name}/{direction}"))

        def queue(direction: str) -> Any:
            kind = service(direction).publish_subscribe(iox2.Slice[ctypes.c_uint8])
            kind = kind.enable_safe_overflow(False).subscriber_max_buffer_size(ROOM)
            return kind.open_or_create()

        publisher = queue(sends).publisher_builder().initial_max_slice_len(LONGEST)
        self.publisher = publisher.create()
        self.subscriber = queue(receives).subscriber_builder().buffer_size(ROOM).create()
        self.notifier = service(sends).event().open_or_create().notifier_builder().create()
        self.listener = service(receives).event().open_or_create().listener_builder().create()
        self.longest_wait = iox2.Duration.from_secs(WAIT)

    def send_all(self, messages: list[Any]) -> None:
        for message in messages:
            data = pickle.dumps(message)
            sample = self.publisher.loan_slice_uninit(len(data))
            sample.payload().as_memory_view().cast("B")[:] = data
            sample.assume_init().send()
        self.notifier.notify()

    def received(self) -> list[Any]:
        """Wait until there is something, and return all of it."""
        self.listener.timed_wait(self.longest_wait)
        messages = []
        while (sample := self.subscriber.receive()) is not None:
            messages.append(pickle.loads(sample.payload().as_memory_view()))
            sample.delete()
        return messages


def side_of(name: str, sends: str, receives: str) -> Side:
    import iceoryx2 as iox2

    iox2.set_log_level(iox2.LogLevel.Error)
    node = iox2.NodeBuilder.new().create(iox2.ServiceType.Ipc)
    return Side(node, name, sends, receives)


def answer(function: Callable[[Any], Any], name: str) -> None:
    side = side_of(name, "answers", "calls")
    side.send_all(["ready"])
    while True:
        messages = side.received()
        if None in messages:
            return
        side.send_all([function(each) for each in messages])


@contextmanager
def called(function: Callable[[Any], Any]) -> Iterator[Callable[[list[Any]], list[Any]]]:
    """Start a process that answers with `function`; call it with all messages of a list."""
    name = f"callboard-bench-{getpid()}"
    side = side_of(name, "calls", "answers")  # before the process, whose first message it gets
    process = multiprocessing.get_context("spawn").Process(target=answer, args=(function, name))
    process.start()

    def call_all(messages: list[Any]) -> list[Any]:
        side.send_all(messages)
        answers: list[Any] = []
        while len(answers) < len(messages):
            answers += side.received()
        return answers

    if side.received() != ["ready"]:
        raise RuntimeError(f"the process has not started within {WAIT} s")
    yield call_all
    side.send_all([None])
    process.join()
