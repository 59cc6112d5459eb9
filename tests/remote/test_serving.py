"""Tells, asks and batches over a real socket, from threads and from asyncio."""

import asyncio
import gc
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from callboard import (
    Actor,
    ActorStopped,
    ActorSystem,
    AskTimeout,
    CallboardError,
    MailboxFull,
    Supervision,
)
from callboard.remote import Connection, Server, ServerLimits, aconnect, connect
from callboard.remote.errors import CodecError, ConnectionLost, RemoteCallError, RemoteError
from callboard.remote.sockets.dialing import dial
from tests.remote.conftest import DEADLINE, Gate, Start, ask_twice, eventually, logged, loss
from tests.waiting import in_threads


def test_told_messages_arrive_in_the_order_of_sending(connection: Connection) -> None:
    notes = connection.ref("notes")
    notes.tell(0)
    notes.tell_many(range(1, 5_000))
    notes.tell(5_000)
    assert notes.ask("all").result(DEADLINE) == [*range(5_001)]


def test_values_of_all_kinds_arrive_as_they_were(connection: Connection) -> None:
    values = [None, (1, [2.5]), {"a": {1}}, 2**80, b"x", ("row", 1), ("row", 2)]
    notes = connection.ref("notes")
    notes.tell_many(values)
    assert notes.ask("all").result(DEADLINE) == values


def test_record_batches_arrive(connection: Connection, server: Server) -> None:
    pa = pytest.importorskip("pyarrow")
    batch = pa.RecordBatch.from_pydict(
        {"n": [1, 2, None], "s": pa.array(["a", "b", "a"]).dictionary_encode()}
    )
    notes = connection.ref("notes")
    notes.send_batch(batch)
    connection.flush(DEADLINE)
    with pytest.raises(RemoteCallError, match="RecordBatch cannot be encoded"):
        notes.ask("all").result(DEADLINE)
    ref = server._entries["notes"].ref  # type: ignore[union-attr]
    (arrived,) = ref.ask("all").result(DEADLINE)
    assert arrived.equals(batch)


def test_messages_larger_than_a_sockets_buffer_pass_both_ways(connection: Connection) -> None:
    notes = connection.ref("notes")
    values = [bytes([number]) * 3_000_000 for number in range(3)]
    for value in values:
        notes.tell(value)
    assert notes.ask("all").result(DEADLINE) == values


def test_a_flush_returns_when_all_is_handled(connection: Connection) -> None:
    gate = connection.ref("gate")
    gate.tell_many([1, 2, 3])
    eventually(lambda: Gate.seen == [1], "the gate has its first message")
    flushed = connection.aflush()
    assert connection.unacknowledged == 3
    assert not flushed.done()
    Gate.opened.set()
    flushed.result(DEADLINE)
    assert Gate.seen == [1, 2, 3]
    assert connection.unacknowledged == 0


def test_an_exception_of_a_handler_comes_back(connection: Connection) -> None:
    with pytest.raises(RemoteCallError, match="ValueError: no booms") as caught:
        connection.ref("notes").ask("boom").result(DEADLINE)
    assert (caught.value.kind, caught.value.text) == ("ValueError", "no booms")


def test_a_failed_tell_is_a_dead_letter_there(connection: Connection, server: Server) -> None:
    connection.ref("notes").tell_many(["boom", 1])
    connection.flush(DEADLINE)
    assert connection.health().result(DEADLINE)["dead_letters"] == 1


def test_an_actor_that_has_stopped_is_said_to_be(connection: Connection, server: Server) -> None:
    server._entries["notes"].ref.stop()  # type: ignore[union-attr]
    with pytest.raises(ActorStopped):
        connection.ref("notes").ask(1).result(DEADLINE)
    connection.ref("notes").tell(1)
    connection.flush(DEADLINE)


def test_a_mailboxs_refusal_is_raised_later(connection: Connection, server: Server) -> None:
    refusing = connection.ref("refusing")
    refusing.tell(1)
    eventually(lambda: Gate.seen == [1], "the gate has its first message")
    refusing.tell(2)  # fills the mailbox
    with pytest.raises(MailboxFull, match="is full"):
        refusing.ask(3).result(DEADLINE)
    refusing.tell(4)
    with pytest.raises(RemoteCallError, match="MailboxFull"):
        ask_twice(connection)
    flushed = connection.aflush()
    letters = server._entries["refusing"].ref.system.dead_letters  # type: ignore[union-attr]
    refused = letters.count
    other = connect(str(connection.address), timeout=DEADLINE)
    other.ref("refusing").tell(5)
    eventually(lambda: letters.count > refused, "it is refused")
    assert not flushed.done()  # it waits for those that the mailbox has taken
    Gate.opened.set()
    with pytest.raises(RemoteCallError, match="MailboxFull"):
        other.__exit__(None, None, None)
    flushed.result(DEADLINE)
    assert Gate.seen == [1, 2]


def test_an_entry_point_that_is_not_there_is_an_error_at_the_call(connection: Connection) -> None:
    with pytest.raises(RemoteError, match="no entry point 'nots'; it has 'notes', 'others'"):
        connection.ref("nots").tell(1)
    with pytest.raises(RemoteError, match="no entry point 'nots'"):
        connection.ref("nots").ask(1).result(DEADLINE)
    assert connection.ref("notes").ask(1).result(DEADLINE) == 1


def test_a_value_without_an_encoding_is_an_error_at_the_call(connection: Connection) -> None:
    with pytest.raises(CodecError, match="object cannot be encoded"):
        connection.ref("notes").tell(object())
    with pytest.raises(TypeError, match="expects an iterable"):
        connection.ref("notes").tell_many(3)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Point:
    x: int


def test_types_that_both_sides_know_arrive(start: Start) -> None:
    server = start(types=[Point])
    with connect(str(server.address), types=[Point]) as connection:
        assert connection.ref("notes").ask(Point(1)).result(DEADLINE) == Point(1)
    with (
        connect(str(server.address)) as connection,
        pytest.raises(CodecError, match="no type is registered here as 'Point'"),
    ):
        connection.ref("notes").ask("all").result(DEADLINE)


def test_a_deferred_answer_comes_when_it_is_there(connection: Connection) -> None:
    owing = connection.ref("owing")
    first, second = owing.ask("please"), owing.ask("please")
    assert owing.ask("now").result(DEADLINE) is None
    assert [first.result(DEADLINE), second.result(DEADLINE)] == ["late", "late"]


def test_an_ask_may_have_a_timeout(connection: Connection) -> None:
    answer = connection.ref("owing").ask("please", timeout=0.01)
    with pytest.raises(AskTimeout, match="no answer from 'owing' at unix:"):
        answer.result(DEADLINE)
    connection.ref("owing").ask("now").result(DEADLINE)
    assert connection.ref("notes").ask(1, timeout=DEADLINE).result() == 1


def test_an_ask_with_a_wrong_timeout_is_not_sent(connection: Connection) -> None:
    notes = connection.ref("notes")
    with pytest.raises(
        ValueError, match="timeout must be a number of seconds from 0 to 1e9, got nan"
    ):
        notes.ask("odd", timeout=float("nan"))
    assert notes.ask("all").result(DEADLINE) == []


def test_a_flush_that_takes_too_long_says_what_is_not_handled(connection: Connection) -> None:
    connection.ref("gate").tell_many([1, 2, 3])
    with pytest.raises(AskTimeout, match=r"flush\(\): .* in 0\.01 s; 3 messages, "):
        connection.flush(0.01)
    connection.ref("gate").ask(4)
    with pytest.raises(AskTimeout, match=r"in 0\.01 s; 4 messages, asks included"):
        connection.flush(0.01)
    with pytest.raises(
        ValueError, match="timeout must be a number of seconds from 0 to 1e9, got nan"
    ):
        connection.flush(float("nan"))


def test_many_threads_share_a_connection(connection: Connection) -> None:
    answers: list[Any] = []

    def work(number: int) -> None:
        notes = connection.ref("notes")
        for index in range(100):
            notes.tell((number, index))
        answers.append(notes.ask(number).result(DEADLINE))

    in_threads(work, range(8))
    assert sorted(answers) == [*range(8)]
    arrived = connection.ref("notes").ask("all").result(DEADLINE)
    for number in range(8):
        mine = [each[1] for each in arrived if isinstance(each, tuple) and each[0] == number]
        assert mine == [*range(100)]


async def test_asyncio_awaits_answers_and_credit(start: Start) -> None:
    server = start(limits=ServerLimits(messages=4))
    async with await aconnect(str(server.address), timeout=DEADLINE) as connection:
        notes, gate = connection.ref("notes"), connection.ref("gate")
        await notes.atell(1)
        answers = await asyncio.gather(*[_wait(notes.ask(number)) for number in range(20)])
        for number in range(4):
            await gate.atell(number)
        with pytest.raises(CallboardError, match="would block the event loop"):
            gate.tell(4)
        waits = gate.atell(5)
        assert not waits.done()
        Gate.opened.set()
        await waits
        await gate.atell_many([6, 7])
    assert answers == [*range(20)]
    assert Gate.seen == [0, 1, 2, 3, 5, 6, 7]


async def _wait(future: Any) -> Any:
    return await future


def test_a_sender_without_credit_waits(start: Start) -> None:
    server = start(limits=ServerLimits(messages=4))
    connection = connect(str(server.address), timeout=DEADLINE)
    connection.timeout = 0.2
    gate = connection.ref("gate")
    gate.tell_many(range(4))
    with pytest.raises(ConnectionLost, match="no connection or no credit"):
        gate.tell(4)
    assert connection.unacknowledged == 4
    Gate.opened.set()
    eventually(lambda: connection.unacknowledged == 0, "the credit is back")
    connection.timeout = DEADLINE
    gate.tell(5)
    connection.flush(DEADLINE)
    assert Gate.seen == [0, 1, 2, 3, 5]
    connection.close()


def test_a_close_ends_the_wait_for_credit(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    server = start(limits=ServerLimits(messages=4))
    connection = connect(str(server.address), timeout=DEADLINE)
    gate = connection.ref("gate")
    gate.tell_many(range(4))
    withdraw = connection._own_session.withdraw

    def closed_meanwhile(submission: Any) -> bool:
        connection.close()
        return withdraw(submission)

    monkeypatch.setattr(connection._own_session, "withdraw", closed_meanwhile)
    connection.timeout = 0.05
    with pytest.raises(ConnectionLost, match="was closed"):
        gate.tell(4)
    Gate.opened.set()


def test_a_close_while_connecting(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    made = threading.Event()

    async def dialling(address: Any, context: Any) -> Any:
        assert made.wait(DEADLINE)
        connected = await dial(address, context)
        connection._own_session._close()
        return connected

    monkeypatch.setattr("callboard.remote.client.session.dial", dialling)
    connection = Connection(str(server.address))
    made.set()
    connection._own_session.closed.result(DEADLINE)
    assert connection._own_session._link is None
    eventually(lambda: server.health()["connections"] == 0, "the server has let it go")


def test_a_full_mailbox_holds_up_its_sender_alone(connection: Connection, server: Server) -> None:
    narrow, notes = connection.ref("narrow"), connection.ref("notes")
    narrow.tell_many(range(10))
    held = notes.ask("held up behind them")
    eventually(lambda: Gate.seen == [0], "the gate has its first message")
    with connect(str(server.address)) as another:
        assert another.ref("notes").ask(2).result(DEADLINE) == 2
    assert not held.done()
    assert connection.health().result(DEADLINE)["state"] == "serving"
    assert server._entries["narrow"].ref.statistics().queue <= 3  # type: ignore[union-attr, operator]
    Gate.opened.set()
    assert held.result(DEADLINE) == "held up behind them"
    connection.flush(DEADLINE)
    assert Gate.seen == [*range(10)]


def test_a_stop_with_a_full_mailbox_frees_senders(connection: Connection, server: Server) -> None:
    narrow = connection.ref("narrow")
    narrow.tell_many(range(10))
    eventually(lambda: Gate.seen == [0], "the gate has its first message")
    server._entries["narrow"].ref.stop()  # type: ignore[union-attr]
    Gate.opened.set()
    connection.flush(DEADLINE)
    health = connection.health().result(DEADLINE)
    assert (health["handled"], health["dead_letters"] + len(Gate.seen)) == (10, 10)


def test_a_message_longer_than_the_server_takes_is_an_error_at_the_call(start: Start) -> None:
    server = start(limits=ServerLimits(frame=4096))
    with connect(str(server.address)) as connection:
        notes = connection.ref("notes")
        with pytest.raises(RemoteError, match="more than the server takes at a time"):
            notes.tell("x" * 5_000)
        notes.tell_many(["x" * 300] * 100)  # goes in several frames
        assert connection.ref("others").ask("y").result(DEADLINE) == "y"
        with pytest.raises(RemoteCallError, match="CodecError: an answer of"):
            notes.ask("all").result(DEADLINE)


def test_a_connection_is_made_again_when_the_server_is(start: Start, tmp_path: Path) -> None:
    first = start()
    connection = connect(str(first.address), timeout=DEADLINE)
    notes = connection.ref("notes")
    assert notes.ask(1).result(DEADLINE) == 1
    first.stop()
    eventually(lambda: connection._own_session.server is None, "the loss is noticed")
    second = start()
    assert second.address == first.address
    assert notes.ask(2).result(DEADLINE) == 2
    assert notes.ask("all").result(DEADLINE) == [2]
    connection.close()


def test_unacknowledged_messages_are_counted_and_raised(start: Start) -> None:
    server = start()
    connection = connect(str(server.address), timeout=DEADLINE)
    gate = connection.ref("gate")
    gate.tell_many(range(3))
    asked = gate.ask(4)
    eventually(lambda: Gate.seen == [0], "the gate has its first message")
    server.stop()
    with pytest.raises(ConnectionLost, match="whether it was handled is unknown"):
        asked.result(DEADLINE)
    assert connection.unacknowledged == 3
    with pytest.raises(ConnectionLost, match="3 messages on it were not acknowledged") as caught:
        gate.tell(5)
    assert caught.value.unacknowledged == 3
    assert connection.unacknowledged == 0
    connection.close()


def test_a_server_that_drains_answers_what_it_has_taken(start: Start) -> None:
    server = start()
    connection = connect(str(server.address), timeout=DEADLINE)
    gate = connection.ref("gate")
    gate.tell_many(range(3))
    asked = gate.ask(3)
    eventually(lambda: Gate.seen == [0], "the gate has its first message")
    draining = threading.Thread(target=server.drain, args=(DEADLINE,))
    draining.start()
    eventually(lambda: server.health()["state"] == "draining", "it drains")
    Gate.opened.set()
    assert asked.result(DEADLINE) == 3
    draining.join(DEADLINE)
    assert connection.unacknowledged == 0
    assert Gate.seen == [0, 1, 2, 3]
    connection.close()


def test_a_connection_that_was_closed_says_so(connection: Connection) -> None:
    connection.close()
    with pytest.raises(ConnectionLost, match="was closed"):
        connection.ref("notes").tell(1)
    with pytest.raises(ConnectionLost, match="was closed"):
        connection.ref("notes").ask(1)


def test_no_server_is_an_error_that_says_why(tmp_path: Path) -> None:
    url = f"unix:{tmp_path}/nobody"

    def says_why(connecting: Callable[[], object]) -> bool:
        said = loss(connecting)
        assert f"no connection to {url} in 0.05 s: " in said
        return "No such file" in said  # else it was not tried yet

    async def main() -> None:
        await aconnect(url, timeout=0.05)

    eventually(lambda: says_why(lambda: connect(url, timeout=0.05)), "it is tried in time")
    eventually(lambda: says_why(lambda: asyncio.run(main())), "and in an event loop")


def test_a_message_counts_as_handled_before_the_client_can_know(
    server: Server, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread may send what is queued, and a pong with it."""
    (peer,) = server._peers
    queue, counted = peer._link.queue, list[int]()

    def note(data: bytes) -> Any:
        counted.append(server._handled)
        return queue(data)

    monkeypatch.setattr(peer._link, "queue", note)
    notes = connection.ref("notes")
    assert notes.ask("answered").result(DEADLINE) == "answered"
    assert isinstance(notes.ask("boom").exception(DEADLINE), RemoteError)
    notes.tell("credited")
    connection.flush(DEADLINE)
    assert {*counted} - {0} == {1, 2, 3}  # 0: a pong that left before the answer


def test_clients_are_logged(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    with connect(str(server.address)) as connection:
        connection.ref("notes").tell(1)
    eventually(logged(caplog, "client left", "unix-1"), "the client has left")
    assert logged(caplog, "client connected", "unix-1")()
    eventually(lambda: server.health()["connections"] == 0, "it is forgotten")
    assert server.health()["handled"] == 1


def test_a_connection_that_nobody_has_any_more_is_closed_when_all_asks_are_answered(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    gate = connect(str(server.address)).ref("gate")
    answer = gate.ask(1)
    del gate
    gc.collect()
    Gate.opened.set()
    assert answer.result(DEADLINE) == 1
    gc.collect()
    eventually(lambda: server.health()["connections"] == 0, "it is gone")


def test_an_actor_awaits_answers_from_elsewhere(connection: Connection) -> None:
    class Asker(Actor[Any]):
        async def receive(self, message: Any) -> Any:
            await connection.ref("notes").atell(message)
            return await connection.ref("notes").ask("all")

    with ActorSystem(workers=1) as system:
        assert system.spawn(Asker).ask(1).result(DEADLINE) == [1]


def test_an_actor_that_would_block_its_worker_is_told(start: Start) -> None:
    connection = connect(str(start(limits=ServerLimits(messages=1)).address))

    class Teller(Actor[Any]):
        def receive(self, message: Any) -> None:
            connection.ref("gate").tell(message)

    with ActorSystem(workers=1) as system:
        teller = system.spawn(Teller, supervision=Supervision("resume"))
        teller.ask(1).result(DEADLINE)
        with pytest.raises(CallboardError, match="would block a worker"):
            teller.ask(2).result(DEADLINE)
        Gate.opened.set()
        connection.flush(DEADLINE)
    assert Gate.seen == [1]
    connection.close()


def test_a_flush_waits_for_what_was_taken_before_a_refusal(connection: Connection) -> None:
    connection.ref("refusing").tell_many([1, 2, 3, 4])
    eventually(lambda: bool(Gate.seen), "the gate has its first message")
    with pytest.raises(RemoteCallError, match="MailboxFull"):
        ask_twice(connection)
    flushed = connection.aflush()
    assert connection.ref("notes").ask(0).result(DEADLINE) == 0
    assert not flushed.done()
    Gate.opened.set()
    flushed.result(DEADLINE)
    assert Gate.seen in ([1], [1, 2])
