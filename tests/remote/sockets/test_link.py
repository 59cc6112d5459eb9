"""Messages of many threads over one link arrive whole, and in each thread's order."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

import pytest

from callboard.remote.sockets.io_thread import IOThread
from callboard.remote.sockets.link import Link
from callboard.remote.wire.frames import Frame, Splitter, frame
from tests.remote.conftest import DEADLINE, eventually

SENDERS, FRAMES = 4, 200


class Ends:
    """Two links in one loop; what comes to the second one is kept."""

    def __init__(self) -> None:
        self.io = IOThread("ends")
        first, second = socket.socketpair()
        for each in (first, second):
            each.setblocking(False)
            each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # soon full
        self.got: list[Frame] = []
        self.ended = threading.Event()
        self.first = Link(self.io.loop, first, Splitter(1 << 20), lambda _: None, lambda _: None)
        self.second = Link(
            self.io.loop, second, Splitter(1 << 20), self.got.extend, lambda _: self.ended.set()
        )
        self.io.call(self.first.start_reading)

    def stop(self) -> None:
        for link in (self.first, self.second):
            with suppress(RuntimeError):
                self.io.call(lambda link=link: link.abort("the test is over"))  # type: ignore[misc]
        self.io.stop(DEADLINE)


@pytest.mark.parametrize("helping", [(False,), (True,), (False, True)], ids=str)
def test_frames_of_many_threads_arrive_whole_and_in_order(helping: tuple[bool, ...]) -> None:
    ends = Ends()
    order = threading.Lock()
    queued: list[bytes] = []

    def sending(name: int) -> None:
        helped = helping[name % len(helping)]
        for number in range(FRAMES):
            body = b"%d %d " % (name, number) * (1 + number % 97)
            with order:
                queued.append(body)
                ends.first.queue(frame(name, body)[:5], body)
            ends.first.push(helped=helped)
            if helped:
                ends.first.help(DEADLINE)

    threads = [threading.Thread(target=sending, args=(name,)) for name in range(SENDERS)]
    for thread in threads:
        thread.start()
    ends.io.call(ends.second.start_reading)
    for thread in threads:
        thread.join(DEADLINE)
    ends.first.call_close()
    assert ends.ended.wait(DEADLINE), "the other side was not hung up on"
    assert [bytes(each.body) for each in ends.got] == queued
    assert ends.first.output_size == 0
    ends.stop()


def test_threads_that_send_while_a_link_is_aborted_come_back() -> None:
    ends = Ends()
    begun = threading.Barrier(SENDERS + 1)

    def sending(act: Callable[[], None]) -> None:
        begun.wait(DEADLINE)
        for _ in range(FRAMES):
            ends.first.queue(b"x" * 1000)
            act()

    def helping() -> None:
        ends.first.push(helped=True)
        ends.first.help(DEADLINE)

    ways = [ends.first.push, helping]
    threads = [threading.Thread(target=sending, args=(ways[name % 2],)) for name in range(SENDERS)]
    for thread in threads:
        thread.start()
    begun.wait(DEADLINE)
    ends.io.call(lambda: ends.first.abort("the test wants it"))
    for thread in threads:
        thread.join(DEADLINE)
    assert not any(thread.is_alive() for thread in threads)
    assert ends.first.output_size == 0
    ends.stop()


def test_a_reader_that_ends_hears_when_all_is_sent_by_any_thread() -> None:
    ends = Ends()
    sent = threading.Event()
    ends.first.on_sent = sent.set
    ends.first.queue(b"what another thread is about to send")
    ends.io.call(ends.first.stop_reading)
    ends.first.push()
    assert sent.wait(DEADLINE)
    assert ends.first.output_size == 0
    ends.stop()


def test_a_side_that_has_sent_all_hangs_up() -> None:
    ends = Ends()
    body = b"y" * 100_000
    ends.first.queue(frame(1, body))
    ends.first.push()
    ends.first.call_close()
    ends.io.call(ends.second.start_reading)
    assert ends.ended.wait(DEADLINE)
    assert [bytes(each.body) for each in ends.got] == [body]
    ends.stop()


def test_an_ended_sender_waits_for_no_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callboard.remote.sockets.link._STUCK", 0.01)
    ends = Ends()
    why: list[str] = []
    ends.first._on_end = why.append
    ends.first.queue(frame(1, b"y" * 1_000_000))
    ends.first.push()
    ends.first.call_close()
    eventually(lambda: why, "it hangs up")
    assert why == ["the other side has read nothing for 0.01 s"]
    assert ends.first.output_size == 0
    ends.stop()


@pytest.mark.parametrize("helping", [False, True])
def test_the_last_data_is_sent_at_an_end(helping: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = Ends()
    write_all = Link._write_all
    left: list[threading.Thread] = []

    def leave_more() -> None:
        ends.first.queue(frame(2, b"left"))
        ends.first.push()  # which finds the other one sending

    def writing(link: Link) -> bool:
        done = write_all(link)
        if done and not left and link is ends.first:
            left.append(threading.Thread(target=leave_more))
            left[0].start()
            left[0].join(DEADLINE)
        return done

    ends.first.queue(frame(1, b"y" * 100_000))
    ends.first.push(helped=helping)
    assert ends.first.output_size > 0, "it is full"
    monkeypatch.setattr(Link, "_write_all", writing)
    ends.io.call(ends.second.start_reading)
    if helping:
        ends.first.help(DEADLINE)
    eventually(lambda: len(ends.got) == 2, "what was left is sent")
    assert bytes(ends.got[1].body) == b"left"
    ends.stop()
