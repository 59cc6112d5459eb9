"""Messages in flight when a connection ends or its user is interrupted."""

import pickle
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from callboard import Actor, ActorSystem, CallboardError
from callboard.remote import Connection, Server, ServerLimits, connect
from callboard.remote.errors import ConnectionLost, RemoteError
from callboard.remote.protocol.kinds import MessageKind
from callboard.remote.sockets.lendable_link import DrivenLink
from callboard.remote.sockets.link import Link
from callboard.remote.wire.codec import Codec
from callboard.remote.wire.frames import Frame
from tests.remote.conftest import DEADLINE, Gate, Start, eventually


class Interrupted(BaseException):
    """What a signal's handler raises."""


def interrupted(method: Callable[..., None]) -> Callable[..., None]:
    """Stand in for a link's method, that the main thread does not come through."""

    def call(*arguments: Any, **options: Any) -> None:
        if threading.current_thread() is threading.main_thread():
            raise Interrupted
        method(*arguments, **options)

    return call


@pytest.mark.parametrize("moment", ["queue", "push"])
def test_an_interrupted_send_shifts_no_answers(
    connection: Connection, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    owed = connection.ref("gate").ask("wait")
    notes = connection.ref("notes")
    with monkeypatch.context() as patch:
        patch.setattr(Link, moment, interrupted(getattr(Link, moment)))
        with pytest.raises(Interrupted):
            notes.ask("interrupted")
    with pytest.raises(ConnectionLost, match="interrupted while it sent"):
        owed.result(DEADLINE)
    eventually(lambda: connection._own_session.server is not None, "it connects again")
    assert notes.ask("later").result(DEADLINE) == "later"


def test_frames_of_an_ended_connection_reach_no_other(connection: Connection) -> None:
    session = connection._own_session
    asked = connection.ref("gate").ask("wait")
    answer = MessageKind.ANSWER.pack(1) + connection._codec.encode("of another")
    session._on_frames(object(), None, [Frame(MessageKind.ANSWER, answer)])  # type: ignore[arg-type]
    assert connection.ref("notes").ask("mine").result(DEADLINE) == "mine"
    assert not asked.done()


def test_a_callback_may_close_the_connection(connection: Connection) -> None:
    gate = connection.ref("gate")
    answers: list[Any] = []
    first, second = gate.ask(1), gate.ask(2)
    first.add_done_callback(lambda _: connection.close())
    second.add_done_callback(answers.append)
    Gate.opened.set()
    assert first.result(DEADLINE) == 1
    with suppress(ConnectionLost):
        assert second.result(DEADLINE) == 2
    eventually(lambda: answers == [second], "its callback has run")


def test_a_callback_that_waits_for_its_own_thread_is_told(connection: Connection) -> None:
    notes = connection.ref("notes")
    raised: list[str] = []

    def asks_again(_: object) -> None:
        try:
            raised.append(repr(notes.ask(2).result(DEADLINE)))
        except CallboardError as error:
            raised.append(str(error))

    first = connection.ref("gate").ask(1)
    first.add_done_callback(asks_again)
    Gate.opened.set()
    assert first.result(DEADLINE) == 1
    eventually(lambda: raised, "the callback has run")
    assert "would wait for an answer that this thread must read" in raised[0]
    assert notes.ask(3).result(DEADLINE) == 3


def test_a_flush_fails_if_an_ask_was_lost(connection: Connection) -> None:
    asked = connection.ref("gate").ask("wait")
    flushed = connection.aflush()
    connection._own_session._io.call(lambda: connection._own_session._hang_up("for the test"))
    with pytest.raises(ConnectionLost, match=r"0 messages .*, 1 asks not answered"):
        flushed.result(DEADLINE)
    with pytest.raises(ConnectionLost):
        asked.result(DEADLINE)


def test_a_flush_is_done_when_what_it_waits_for_is_withdrawn(start: Start) -> None:
    server = start(limits=ServerLimits(messages=2))
    connection = connect(str(server.address), timeout=DEADLINE)
    server.stop()
    eventually(lambda: connection._own_session.server is None, "the loss is noticed")
    connection.timeout = 0.05
    flushed: list[Any] = []
    withdraw = connection._own_session.withdraw

    def flushing(submission: Any) -> bool:
        flushed.append(connection.aflush())
        return withdraw(submission)

    connection._own_session.withdraw = flushing  # type: ignore[method-assign]
    with pytest.raises(ConnectionLost, match="no connection or no credit"):
        connection.ref("notes").tell(1)
    assert flushed[0].result(DEADLINE) is None
    connection.close()


def test_the_future_of_many_rows_fails_as_the_first_that_is_refused(start: Start) -> None:
    server = start(limits=ServerLimits(frame=4096))
    with connect(str(server.address), timeout=DEADLINE) as connection:
        notes = connection.ref("notes")
        rows = ["a", "x" * 5_000, "b"]
        sent = notes.atell_many(rows)
        with pytest.raises(RemoteError, match="more than the server takes at a time"):
            sent.result(DEADLINE)
        assert notes.ask("all").result(DEADLINE) == ["a", "b"]
        assert notes.atell_many([]).done()
        assert notes.atell_many(range(5_000)).result(DEADLINE) is None


def test_rows_told_before_there_is_a_connection_fit_any_server(start: Start) -> None:
    server = start(limits=ServerLimits(frame=4096, messages=3))
    connection = Connection(str(server.address))
    sent = connection.ref("notes").atell_many(["x" * 100] * 20)
    assert sent.result(DEADLINE) is None
    assert len(connection.ref("notes").ask("all").result(DEADLINE)) == 20
    connection.close()


def test_a_copy_of_a_closed_connection_connects_anew(server: Server) -> None:
    data = pickle.dumps(Connection(str(server.address), timeout=DEADLINE))
    first = pickle.loads(data)
    assert first.ref("notes").ask(1).result(DEADLINE) == 1
    assert pickle.loads(data) is first
    first.close()
    second = pickle.loads(data)
    assert second.ref("notes").ask(2).result(DEADLINE) == 2
    second.close()


def test_a_slow_pong_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = count()

    def growing(_: DrivenLink) -> int:
        return min(next(looks), 20)

    monkeypatch.setattr(DrivenLink, "received", property(growing, lambda *_: None), raising=False)
    said = {"entries": ["e"], "frame": 4096, "messages": 9, "bytes": 4096, "idle": 0.03}
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{tmp_path}/mute")
        listener.listen()
        connection = Connection(f"unix:{tmp_path}/mute")
        asked = connection.ref("e").ask(1)
        with listener.accept()[0] as accepted:
            accepted.sendall(MessageKind.WELCOME.frame(rest=Codec().encode(said)))
            with pytest.raises(ConnectionLost, match="no answer to a ping"):
                asked.result(DEADLINE)
        assert next(looks) > 20
        connection.close()


def test_a_question_that_cannot_be_waited_for_is_not_sent(server: Server) -> None:
    class Asks(Actor[Any]):
        def receive(self, act: Callable[[], Any]) -> Any:
            return act()

    connection = connect(str(server.address), timeout=DEADLINE)
    with ActorSystem(workers=1) as system:
        asks = system.spawn(Asks)
        with pytest.raises(CallboardError, match=r"commit.* would block a worker"):
            asks.ask(lambda: connection.commit("job", 1, [])).result(DEADLINE)
    connection.close()
