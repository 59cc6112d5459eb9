"""A worker that answers a waiting client reads its next question."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from callboard.core.threads.interpreter import has_gil
from callboard.remote import Connection, Server, connect
from callboard.remote.errors import ConnectionRejected
from callboard.remote.protocol.kinds import MessageKind
from callboard.remote.server.peer import Peer
from callboard.remote.sockets.lendable_link import LendableLink
from tests.remote.conftest import DEADLINE, Gate, eventually

Readers = list[tuple[str, int]]


@pytest.fixture
def readers(monkeypatch: pytest.MonkeyPatch) -> Readers:
    """The names of the threads that read at the server, and how many frames came at once."""
    seen: Readers = []
    on_frames = Peer._on_frames

    def noting(peer: Peer, frames: list[Any]) -> None:
        seen.append((threading.current_thread().name, len(frames)))
        on_frames(peer, frames)

    monkeypatch.setattr(Peer, "_on_frames", noting)
    return seen


def are_workers(readers: Readers) -> Iterator[bool]:
    return (not name.endswith("-serve") for name, _ in readers)


@pytest.fixture
def polled(readers: Readers, connection: Connection) -> Connection:
    """A connection that a worker has polled."""
    ask = connection.ref("notes").ask

    def is_read_by_a_worker() -> bool:
        ask("all").result(DEADLINE)
        return any(are_workers(readers))

    eventually(is_read_by_a_worker, "a worker reads")
    return connection


def lent(server: Server) -> bool:
    (peer,) = server._peers
    return peer._link._wake_fd >= 0


def test_questions_are_answered_in_order(readers: Readers, polled: Connection) -> None:
    notes = polled.ref("notes")
    expected: list[Any] = []
    for number in range(300):
        for one in range(number % 3):
            notes.tell((number, one))
            expected.append((number, one))
        assert notes.ask(number).result(DEADLINE) == number
        expected.append(number)
    assert notes.ask("all").result(DEADLINE) == expected
    assert polled.health().result(DEADLINE)["handled"] >= len(expected)


def test_the_loop_reads_a_client(readers: Readers, polled: Connection, server: Server) -> None:
    owed = polled.ref("owing").ask("please")
    readers.clear()
    for number in range(50):
        assert polled.ref("notes").ask(number).result(DEADLINE) == number
    assert len(readers) > 10
    # Before it is known, each of the two workers may have set out to read what comes next.
    assert sum(are_workers(readers)) <= 2
    polled.ref("owing").tell("now")
    assert owed.result(DEADLINE) == "late"


def test_a_health_check_is_answered_while_a_worker_is_busy(polled: Connection) -> None:
    held = polled.ref("gate").ask("wait")
    for _ in range(3):
        assert polled.health().result(DEADLINE)["state"] == "serving"
    assert not held.done()


@pytest.mark.skipif(not has_gil(), reason="the loop reads while workers work")
def test_a_client_that_only_tells_is_read_by_its_worker(
    readers: Readers, connection: Connection
) -> None:
    notes = connection.ref("notes")
    told: list[int] = []

    def is_read_by_a_worker() -> bool:
        for _ in range(10):
            notes.tell(len(told))
            told.append(len(told))
        connection.flush(DEADLINE)
        return any(are_workers(readers))

    eventually(is_read_by_a_worker, "a worker reads")
    held = connection.ref("gate")
    held.tell("wait")
    assert connection.health().result(DEADLINE)["state"] == "serving", "while it is busy"
    Gate.opened.set()
    assert notes.ask("all").result(DEADLINE) == told


@pytest.mark.skipif(not has_gil(), reason="the loop reads while workers work")
def test_credit_does_not_wait_for_the_rest_of_a_message(
    readers: Readers, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callboard.remote.sockets.lendable_link._KEEP_TIME", DEADLINE)

    def is_begun_while_a_worker_is_away() -> bool:
        Gate.opened.clear()
        with connect(str(server.address), timeout=DEADLINE) as connection:
            for number in range(10):
                connection.ref("notes").tell(number)
                connection.flush()
            seen = len(Gate.seen)
            connection.ref("gate").tell("wait")
            eventually(lambda: len(Gate.seen) > seen, "it is in work")
            by_a_worker = list(are_workers(readers))[-1]
            link = connection._own_session._link
            assert link is not None
            link.queue(b"\0\0")
            link.push()
            Gate.opened.set()
            connection.flush()
        return by_a_worker

    eventually(is_begun_while_a_worker_is_away, "a worker reads the beginning of a message")


def test_a_client_left_by_its_worker_gets_the_waiting_credit(
    connection: Connection, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LendableLink, "has_more", lambda link: True)
    (peer,) = server._peers
    peer._link.on_turn = lambda: False
    connection.ref("notes").tell(1)
    eventually(lambda: connection.health().result(DEADLINE)["handled"] > 0, "it is handled")
    server.drain(DEADLINE)
    connection.flush()


def test_a_refusal_by_a_worker_ends_the_connection(readers: Readers, server: Server) -> None:
    def is_refused_by_a_worker() -> bool:
        connection = connect(str(server.address), timeout=DEADLINE)
        assert connection.ref("notes").ask(1).result(DEADLINE) == 1
        link = connection._own_session._link
        assert link is not None
        link.queue(MessageKind.WELCOME.frame(rest=b"from a client"))
        link.push()
        connection._own_session.closed.result(DEADLINE)
        with pytest.raises(ConnectionRejected, match="a client may not send WELCOME at this point"):
            connection.flush()
        return list(are_workers(readers))[-1]

    eventually(is_refused_by_a_worker, "a worker read what is refused")
    eventually(lambda: not server._peers, "all were hung up on")


def test_a_server_stops_while_a_worker_polls(server: Server, polled: Connection) -> None:
    def is_lent() -> bool:
        polled.ref("notes").ask("all").result(DEADLINE)
        return lent(server)

    eventually(is_lent, "a worker polls")
    server.stop()
    assert not server._peers
