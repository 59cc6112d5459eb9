"""A thread that waits for an answer reads the connection itself, also for other threads."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from callboard import AskCancelled, AskTimeout, Future
from callboard.core.errors import DrainTimeout
from callboard.remote import Connection, Server, connect
from callboard.remote.errors import ConnectionLost
from callboard.remote.sockets.lendable_link import DrivenLink
from tests.remote.conftest import DEADLINE, eventually
from tests.waiting import in_threads


def link_of(connection: Connection) -> DrivenLink:
    link = connection._own_session._link
    assert link is not None
    return link


@pytest.fixture
def connection(connection: Connection) -> Connection:
    """A connection that nobody reads, as the answer to its first ping has come."""
    link = link_of(connection)
    eventually(
        lambda: connection._own_session.health and not link._reading.locked(), "nobody reads"
    )
    return connection


@contextmanager
def once_driven(connection: Connection, action: Callable[[], Any]) -> Iterator[None]:
    """Do something in another thread as soon as a thread drives the connection."""
    link, errors = link_of(connection), []

    def acting() -> None:
        try:
            eventually(lambda: link._awaited is not None, "a thread drives")
            action()
        except BaseException as error:
            errors.append(error)

    other = threading.Thread(target=acting)
    other.start()
    yield
    other.join()
    assert errors == []


def let_go(server: Server, answer: Future[Any]) -> Callable[[], None]:
    """Make what lets the server answer, as soon as it has been asked."""

    def answered() -> bool:
        server._entries["owing"].tell(["now"])
        return answer.done()

    return lambda: eventually(answered, "it was answered")


@pytest.fixture(autouse=True)
def _let_all_go(server: Server) -> Iterator[None]:
    """Answer at the end what was left open: a system is not idle before."""
    yield

    def idle() -> bool:
        server._entries["owing"].tell(["now"])
        with suppress(DrainTimeout):
            server._system.drain(0.1)
            return True
        return False

    eventually(idle, "all was answered")


def test_the_thread_that_waits_completes_the_answer(connection: Connection, server: Server) -> None:
    answer = connection.ref("owing").ask("please")
    completed_by: list[int] = []
    answer.add_done_callback(lambda _: completed_by.append(threading.get_ident()))
    with once_driven(connection, let_go(server, answer)):
        assert answer.result(DEADLINE) == "late"
    assert completed_by == [threading.get_ident()]


def test_a_waiter_that_times_out_gives_it_back(connection: Connection, server: Server) -> None:
    answer = connection.ref("owing").ask("please")
    for timeout in (0, 0.01):
        with pytest.raises(AskTimeout, match=f"no answer after {timeout} s"):
            answer.result(timeout)
    done = threading.Event()
    answer.add_done_callback(lambda _: done.set())
    let_go(server, answer)()
    assert done.wait(DEADLINE), "nobody reads"
    assert answer.result() == "late"


def test_an_answer_that_somebody_else_gives_wakes_who_waits(connection: Connection) -> None:
    answer = connection.ref("owing").ask("please")
    with once_driven(connection, lambda: answer.set_result("mine")):
        assert answer.result(DEADLINE) == "mine"
    assert connection.ref("notes").ask(1).result(DEADLINE) == 1


def test_a_connection_that_is_closed_wakes_who_waits(connection: Connection) -> None:
    answer = connection.ref("owing").ask("please")
    with (
        once_driven(connection, connection.close),
        pytest.raises(ConnectionLost, match="was lost: "),
    ):
        answer.result(DEADLINE)


def test_a_connection_that_breaks_wakes_who_waits(connection: Connection, server: Server) -> None:
    answer = connection.ref("owing").ask("please")

    def breaking() -> None:
        (peer,) = server._peers
        peer.break_off("the test wants it")

    with (
        once_driven(connection, breaking),
        pytest.raises(ConnectionLost, match="whether it was handled is unknown"),
    ):
        answer.result(DEADLINE)
    assert connection.ref("notes").ask(1).result(DEADLINE) == 1


def test_threads_that_wait_together_get_their_own_answers(connection: Connection) -> None:
    notes = connection.ref("notes")
    wrong: list[Any] = []

    def asking(name: int) -> None:
        for number in range(100):
            answer = notes.ask((name, number)).result(DEADLINE)
            if answer != (name, number):
                wrong.append(answer)

    in_threads(asking, range(4))
    assert wrong == []
    assert len(notes.ask("all").result(DEADLINE)) == 400


def test_a_signal_ends_the_wait_and_not_the_connection(connection: Connection) -> None:
    class Signalled(Exception):
        pass

    def handler(*_: object) -> None:
        raise Signalled

    before = signal.signal(signal.SIGUSR1, handler)
    main = threading.get_ident()
    answer = connection.ref("owing").ask("please")
    try:
        with (
            once_driven(connection, lambda: signal.pthread_kill(main, signal.SIGUSR1)),
            pytest.raises(Signalled),
        ):
            answer.result(DEADLINE)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert connection.ref("notes").ask(1).result(DEADLINE) == 1
    assert not answer.done()


def test_an_interrupt_within_a_frame_breaks_the_connection(
    connection: Connection, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(BaseException):
        pass

    link, main = link_of(connection), threading.get_ident()
    receive = link._receive

    def interrupted() -> bool:
        if threading.get_ident() == main:
            raise Interrupted
        return receive()

    monkeypatch.setattr(link, "_receive", interrupted)
    answer = connection.ref("owing").ask("please")
    with once_driven(connection, let_go(server, answer)), pytest.raises(Interrupted):
        answer.result(DEADLINE)
    with pytest.raises(ConnectionLost, match="the thread that read it was interrupted"):
        answer.result(DEADLINE)
    assert connection.ref("notes").ask(1).result(DEADLINE) == 1


def test_an_interrupted_send_is_not_repeated(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(BaseException):
        pass

    link, main = link_of(connection), threading.get_ident()
    write = link._write_some

    def interrupted(parts: Any) -> int:
        count = write(parts)
        if threading.get_ident() == main:
            raise Interrupted
        return count

    monkeypatch.setattr(link, "_write_some", interrupted)
    notes = connection.ref("notes")
    with pytest.raises(Interrupted):
        notes.tell(1)
    with suppress(ConnectionLost):  # unless it is known to be handled already
        connection.flush(DEADLINE)
    eventually(lambda: connection._own_session._link is not link, "the connection was broken off")
    assert notes.ask(2).result(DEADLINE) == 2
    assert sorted(notes.ask("all").result(DEADLINE)) in ([1, 2], [2])


def test_a_forked_child_waits_on_its_own(connection: Connection, server: Server) -> None:
    answer = connection.ref("owing").ask("please")
    child = os.fork()
    if child == 0:
        try:
            answer.result(0.01)
        except AskTimeout:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    with once_driven(connection, let_go(server, answer)):
        assert answer.result(DEADLINE) == "late"


def test_descriptors_go_with_the_connection(server: Server) -> None:
    def count() -> int:
        return len(os.listdir("/proc/self/fd"))

    eventually(lambda: not server._peers, "nobody is connected")
    most = count() + 2  # either worker may have made its wake descriptor by now
    for _ in range(4):
        with connect(str(server.address), timeout=DEADLINE) as connection:
            assert connection.ref("notes").ask(1).result(DEADLINE) == 1
    eventually(lambda: count() <= most, "all descriptors are closed")


def test_a_cancelled_ask_ends_its_wait_and_others_are_served(connection: Connection) -> None:
    answer = connection.ref("owing").ask("one")
    with once_driven(connection, answer.cancel), pytest.raises(AskCancelled):
        answer.result(DEADLINE)
    assert connection.ref("notes").ask("next").result(DEADLINE) == "next"


def test_an_ask_fails_in_time_while_its_thread_reads(connection: Connection) -> None:
    with pytest.raises(AskTimeout, match=r"no answer from 'owing' at .* after 0.05 s"):
        connection.ref("owing").ask("please", timeout=0.05).result(DEADLINE)
