"""An idle worker reads the descriptors lent to it, and is woken for work."""

import errno
import os
import threading
import time
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any

import pytest

from callboard import Actor, ActorSystem, DrainTimeout, Future
from callboard.scheduling.inline_polling import poll_inline
from callboard.scheduling.worker import on_worker

DEADLINE = 60.0  # seconds: far more than anything takes


class Pipe:
    """Lends the end of a pipe; what is done with it is noted, and by which thread."""

    def __init__(self) -> None:
        self.end, self.other = os.pipe()
        os.set_blocking(self.end, False)
        self.wake_fds: list[int] = []
        self.loans = 0
        self.lent, self.taken_back = threading.Event(), threading.Event()
        self.read: list[tuple[bytes, str]] = []
        self.lends = True

    def close(self) -> None:
        os.close(self.end)
        os.close(self.other)

    def lend(self, wake_fd: int) -> int:
        self.wake_fds.append(wake_fd)
        self.lent.set()
        self.loans += self.lends
        return self.end if self.lends else -1

    def take_back(self, is_readable: bool) -> bool:
        if is_readable:
            self.read.append((os.read(self.end, 100), threading.current_thread().name))
        self.taken_back.set()
        return False


class Kept(Pipe):
    """One that a worker keeps until it has read it so often; something is done after each time."""

    def __init__(self, times: int, after: Callable[["Kept"], None]) -> None:
        super().__init__()
        self.left, self.after = times, after
        self.times_taken_back = 0

    def take_back(self, is_readable: bool) -> bool:
        super().take_back(is_readable)
        self.times_taken_back += 1
        if is_readable:
            self.left -= 1
            self.after(self)
        return self.left > 0


class Poller(Actor[Any]):
    """Has its worker poll what it is told."""

    def receive(self, message: Any) -> Any:
        return threading.current_thread().name if message == "who" else poll_inline(message)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    pipe.close()


@pytest.fixture(params=[1, 2], ids="workers={}".format)
def ask(request: pytest.FixtureRequest) -> Iterator[Callable[[Any], Any]]:
    with ActorSystem(workers=request.param) as system:
        ref = system.spawn(Poller)
        yield lambda message: ref.ask(message).result(DEADLINE)


def test_a_readable_descriptor_is_read_by_the_worker(ask: Callable[[Any], Any], pipe: Pipe) -> None:
    os.write(pipe.other, b"a question")
    name = ask("who")
    given_up = time.monotonic() + DEADLINE
    while time.monotonic() < given_up:  # not while the other worker is at work
        pipe.taken_back.clear()
        assert ask(pipe)
        assert pipe.taken_back.wait(DEADLINE)
        if pipe.read:
            break
    (read,) = pipe.read
    assert read[0] == b"a question"
    assert read[1].rpartition("-")[0] == name.rpartition("-")[0]


def test_a_silent_descriptor_is_given_back(ask: Callable[[Any], Any], pipe: Pipe) -> None:
    assert ask(pipe)
    assert pipe.taken_back.wait(DEADLINE)
    assert pipe.read == []


def test_messages_are_handled_while_a_worker_polls(ask: Callable[[Any], Any], pipe: Pipe) -> None:
    for _ in range(100):
        pipe.lent.clear()
        pipe.taken_back.clear()
        assert ask(pipe)
        assert pipe.lent.wait(DEADLINE)
        assert ask("who")
        assert pipe.taken_back.wait(DEADLINE)
    assert len(set(pipe.wake_fds)) <= 2  # one for a worker, however often


def test_a_write_to_the_wake_fd_ends_the_polling(ask: Callable[[Any], Any], pipe: Pipe) -> None:
    for _ in range(2):  # and the next one is as the first
        pipe.lent.clear()
        pipe.taken_back.clear()
        assert ask(pipe)
        assert pipe.lent.wait(DEADLINE)
        os.eventfd_write(pipe.wake_fds[-1], 1)
        assert pipe.taken_back.wait(DEADLINE)


def test_descriptors_not_lent_are_not_taken_back(ask: Callable[[Any], Any], pipe: Pipe) -> None:
    pipe.lends = False
    os.write(pipe.other, b"a question")
    assert ask(pipe)
    assert pipe.lent.wait(DEADLINE)
    assert ask("who")
    assert not pipe.taken_back.is_set()
    assert pipe.read == []


def test_errors_of_a_lender_are_logged(
    ask: Callable[[Any], Any], pipe: Pipe, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(wake_fd: int) -> int:
        pipe.lent.set()
        raise ValueError("nothing is lent")

    pipe.lend = failing  # type: ignore[method-assign]
    assert ask(pipe)
    assert pipe.lent.wait(DEADLINE)
    given_up = time.monotonic() + DEADLINE
    while "nothing is lent" not in caplog.text and time.monotonic() < given_up:
        assert ask("who")
    assert "nothing is lent" in caplog.text


@pytest.fixture
def kept(request: pytest.FixtureRequest) -> Callable[..., Kept]:
    def make(times: int, after: Callable[[Kept], None] = lambda kept: None) -> Kept:
        kept = Kept(times, after)
        request.addfinalizer(kept.close)
        return kept

    return make


def test_a_kept_descriptor_is_lent_again_each_time(kept: Callable[..., Kept]) -> None:
    ended = threading.Event()

    def go_on(pipe: Kept) -> None:
        if pipe.left:
            os.write(pipe.other, b"another")
        else:
            ended.set()

    pipe = kept(100, go_on)
    os.write(pipe.other, b"a question")
    with ActorSystem(workers=1) as system:
        assert system.spawn(Poller).ask(pipe).result(DEADLINE)
        assert ended.wait(DEADLINE)
    assert [data for data, _ in pipe.read] == [b"a question"] + [b"another"] * 99
    assert len({name for _, name in pipe.read}) == 1


def test_a_worker_with_a_kept_one_takes_no_other(kept: Callable[..., Kept], pipe: Pipe) -> None:
    with ActorSystem(workers=1) as system:
        ref = system.spawn(Poller)
        answers: SimpleQueue[Future[Any]] = SimpleQueue()

        def ask_once(keeps: Kept) -> None:
            if keeps.left:
                answers.put(ref.ask(pipe))

        keeps = kept(2, ask_once)
        os.write(keeps.other, b"a question")
        assert ref.ask(keeps).result(DEADLINE)
        assert not answers.get(timeout=DEADLINE).result(DEADLINE)
        assert pipe.wake_fds == []


def test_a_kept_descriptor_is_taken_back_at_the_end(kept: Callable[..., Kept]) -> None:
    pipe = kept(1)
    with ActorSystem(workers=1) as system:
        assert system.spawn(Poller).ask(pipe).result(DEADLINE)
        assert pipe.taken_back.wait(DEADLINE)
    assert pipe.times_taken_back == len(pipe.wake_fds)


class Held(Poller):
    """Keeps its worker between two meetings at a barrier, too."""

    def receive(self, message: Any) -> Any:
        if isinstance(message, threading.Barrier):
            message.wait(DEADLINE)
            message.wait(DEADLINE)
            return None
        return super().receive(message)


def test_a_descriptor_taken_away_is_not_taken_back_twice(kept: Callable[..., Kept]) -> None:
    pipe, barrier = kept(1), threading.Barrier(2)
    system = ActorSystem(workers=1)
    ref = system.spawn(Held)
    worker = system._runtime.team.workers[0]
    assert ref.ask(pipe).result(DEADLINE)
    assert pipe.taken_back.wait(DEADLINE)
    ref.tell(barrier)
    barrier.wait(DEADLINE)
    with pytest.raises(DrainTimeout):
        system.stop(timeout=0)
    pipe.lends = False
    barrier.wait(DEADLINE)
    assert worker.thread is not None
    worker.thread.join(DEADLINE)
    assert not worker.thread.is_alive()
    assert pipe.loans < len(pipe.wake_fds), "it was to be lent once more"
    assert pipe.times_taken_back == pipe.loans


def test_no_worker_polls_without_a_wake_fd(
    ask: Callable[[Any], Any], pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "eventfd", fail)
    assert not ask(pipe)
    assert pipe.wake_fds == []


def test_only_a_worker_polls(pipe: Pipe) -> None:
    assert not on_worker()
    assert not poll_inline(pipe)
    assert pipe.wake_fds == []
