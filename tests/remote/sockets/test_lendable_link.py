"""One thread at a time reads a link; the loop takes it back from a borrower that stays away."""

import os
import socket
import threading
from collections.abc import Iterator

import pytest

from callboard.remote.sockets.io_thread import IOThread
from callboard.remote.sockets.lendable_link import LendableLink
from callboard.remote.wire.frames import Frame, Splitter, frame
from tests.remote.conftest import DEADLINE, eventually

MESSAGE = frame(7, b"hello")


class Served:
    """A lent link, the other end of its socket, and who has read what."""

    def __init__(self) -> None:
        self.io = IOThread("lent-loop")
        self.other, mine = socket.socketpair()
        mine.setblocking(False)
        self.got: list[tuple[bytes, str]] = []
        self.turns: list[str] = []  # the threads that called on_turn()
        self.may_keep = True
        self.ended = threading.Event()
        self.link = LendableLink(
            self.io.loop, mine, Splitter(1 << 24), self.take, lambda _: self.ended.set()
        )
        self.link.on_turn = self.turn
        self.link.is_open = True
        self.wake_fd = os.eventfd(0, os.EFD_NONBLOCK)
        self.io.call(self.link.start_reading)

    def take(self, frames: list[Frame]) -> None:
        name = threading.current_thread().name
        self.got += [(bytes(each.body), name) for each in frames]

    def turn(self) -> bool:
        self.turns.append(threading.current_thread().name)
        return self.may_keep

    def keep(self) -> None:
        """Borrow it, read a message, and be away."""
        assert self.link.lend(self.wake_fd) >= 0
        self.other.sendall(MESSAGE)
        assert self.link.take_back(is_readable=True)

    def is_read_by_the_loop(self) -> bool:
        return bool(self.got) and self.got[-1][1] == "lent-loop"

    def stop(self) -> None:
        if not self.ended.is_set():
            self.io.call(lambda: self.link.abort("the test is over"))
        self.io.stop(DEADLINE)
        self.other.close()
        os.close(self.wake_fd)


@pytest.fixture
def served() -> Iterator[Served]:
    served = Served()
    yield served
    served.stop()


HERE = threading.current_thread().name


def test_a_return_in_time_reads_on(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callboard.remote.sockets.lendable_link._KEEP_TIME", DEADLINE)
    for number in range(1, 4):
        served.keep()
        assert [name for _, name in served.got] == [HERE] * number
    assert served.turns == [HERE] * 3
    assert served.link.lend(served.wake_fd) >= 0
    assert not served.link.take_back(is_readable=False)
    served.other.sendall(MESSAGE)
    eventually(served.is_read_by_the_loop, "the loop reads")


def test_a_borrower_that_stays_away_loses_the_link(served: Served) -> None:
    served.keep()
    served.other.sendall(MESSAGE)
    eventually(served.is_read_by_the_loop, "the loop reads")
    served.io.call(lambda: None)  # and has read
    assert served.turns == [HERE, "lent-loop"]
    assert served.link.lend(served.wake_fd) >= 0, "it is borrowed anew"
    assert not served.link.take_back(is_readable=False)


def test_other_frames_go_to_the_loop(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callboard.remote.sockets.lendable_link._KEEP_TIME", DEADLINE)
    served.may_keep = False
    assert served.link.lend(served.wake_fd) >= 0
    served.other.sendall(MESSAGE * 2)
    assert not served.link.take_back(is_readable=True)
    served.other.sendall(MESSAGE)
    eventually(served.is_read_by_the_loop, "the loop reads")
    assert served.got == [(b"hello", HERE)] * 2 + [(b"hello", "lent-loop")]


def test_another_does_not_get_it_meanwhile(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callboard.remote.sockets.lendable_link._KEEP_TIME", DEADLINE)
    served.keep()
    other = os.eventfd(0)
    assert served.link.lend(other) == -1
    os.close(other)
    assert served.link.lend(served.wake_fd) >= 0
    served.link.take_back(is_readable=False)


def test_a_frame_in_parts_is_one_loan(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callboard.remote.sockets.lendable_link._KEEP_TIME", DEADLINE)
    large = frame(7, b"x" * 100_000)
    for part in (large[:10], large[10:70_000], large[70_000:]):
        assert served.link.lend(served.wake_fd) >= 0
        served.other.sendall(part)
        assert served.link.take_back(is_readable=True)
    assert served.got == [(b"x" * 100_000, HERE)]
    served.link.lend(served.wake_fd)
    served.link.take_back(is_readable=False)


def test_it_says_whether_more_has_come(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callboard.remote.sockets.lendable_link._KEEP_TIME", DEADLINE)
    served.keep()
    assert not served.link.has_more()
    served.other.sendall(MESSAGE)
    assert served.link.has_more()
    assert served.link.lend(served.wake_fd) >= 0
    assert not served.link.has_more(), "it is not away"
    assert not (served.link.take_back(is_readable=True) and served.link.has_more())


@pytest.mark.parametrize("by", ["abort", "close", "the other side"])
def test_a_link_that_ends_while_its_borrower_is_away_is_closed(served: Served, by: str) -> None:
    served.keep()
    if by == "abort":
        served.io.call(lambda: served.link.abort("enough"))
        assert served.link._socket.fileno() == -1
    elif by == "close":
        served.io.call(served.link.close)
    served.other.close()
    assert served.ended.wait(DEADLINE)
    assert served.link._socket.fileno() == -1
    assert served.link.lend(served.wake_fd) == -1


def test_an_ended_reader_gives_it_back(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callboard.remote.sockets.lendable_link._KEEP_TIME", DEADLINE)
    served.keep()
    served.io.call(served.link.stop_reading)
    assert served.link.lend(served.wake_fd) == -1
    assert served.turns == [HERE] * 2, "what was left to a later turn is done"
    served.other.sendall(MESSAGE)
    served.io.call(served.link.start_reading)
    eventually(served.is_read_by_the_loop, "the loop reads")
