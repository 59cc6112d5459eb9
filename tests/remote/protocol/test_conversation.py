"""Client and server over a network that chops, delays and drops connections.

Nothing is handled twice or out of order, credit is kept, and what is lost is counted.
"""

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    multiple,
    precondition,
    rule,
)

from callboard import Future
from callboard.remote.errors import ConnectionLost, RemoteCallError
from callboard.remote.protocol.conversation import Conversation, Submission
from callboard.remote.protocol.kinds import Goodbye, MessageKind
from callboard.remote.wire.frames import Splitter
from tests.remote.network import (
    CODEC,
    ENTRIES,
    LIMITS,
    SECRET,
    SimulatedConnection,
    SimulatedServer,
)

chunk = st.integers(1, 300)


class Network(RuleBasedStateMachine):
    flushes = Bundle("flushes")

    def __init__(self) -> None:
        super().__init__()
        self.server = SimulatedServer()
        self.client = Conversation(CODEC, SECRET)
        self.connection: SimulatedConnection | None = None
        self.splitter = Splitter(LIMITS.frame)
        self.number = 0
        self.told: list[int] = []
        self.asked: dict[int, Future[Any]] = {}
        self.lost = 0  # as the client was told

    def send(self) -> None:
        output, outcomes = self.client.take()
        if self.connection is not None:
            self.connection.to_server += b"".join(output)
        else:
            assert output == []
        reports = {
            id(error): error for _, _, error in outcomes if isinstance(error, ConnectionLost)
        }
        self.lost += sum(error.unacknowledged for error in reports.values())
        for outcome in outcomes:
            outcome.complete()

    def submit(self, kind: MessageKind, entry: str, values: list[int]) -> Submission:
        many = kind is MessageKind.TELL_MANY
        data = CODEC.encode_rows(values) if many else CODEC.encode(values[0])
        answer: Future[Any] | None = Future() if kind is MessageKind.ASK else None
        submission = Submission(kind, entry, (data,), len(values), answer)
        self.client.submit(submission)
        self.send()
        return submission

    def next_numbers(self, count: int) -> list[int]:
        self.number += count
        return [*range(self.number - count + 1, self.number + 1)]

    @rule(entry=st.sampled_from(ENTRIES))
    def tell(self, entry: str) -> None:
        values = self.next_numbers(1)
        self.told += values
        self.submit(MessageKind.TELL, entry, values)

    @rule(entry=st.sampled_from(ENTRIES), count=st.integers(1, LIMITS.messages))
    def tell_many(self, entry: str, count: int) -> None:
        values = self.next_numbers(count)
        self.told += values
        self.submit(MessageKind.TELL_MANY, entry, values)

    @rule(entry=st.sampled_from(ENTRIES))
    def ask(self, entry: str) -> None:
        (value,) = self.next_numbers(1)
        submission = self.submit(MessageKind.ASK, entry, [value])
        assert submission.answer is not None
        self.asked[value] = submission.answer

    @precondition(lambda self: self.connection is None)
    @rule()
    def connect(self) -> None:
        self.connection = SimulatedConnection()
        self.splitter = Splitter(LIMITS.frame)
        self.client.begin()
        self.send()

    @precondition(lambda self: self.connection and self.connection.to_server)
    @rule(count=chunk)
    def bytes_reach_the_server(self, count: int) -> None:
        assert self.connection is not None
        self.server.move(self.connection, count)

    @precondition(lambda self: self.connection and self.connection.to_client)
    @rule(count=chunk)
    def bytes_reach_the_client(self, count: int) -> None:
        assert self.connection is not None
        data = bytes(self.connection.to_client[:count])
        del self.connection.to_client[:count]
        for received in self.splitter.feed(data):
            if isinstance(self.client.receive(received), Goodbye):
                self.send()
                self.drop()
                return
            self.send()

    @precondition(lambda self: self.server.taken)
    @rule(looks=st.booleans())
    def the_server_handles_a_delivery(self, looks: bool) -> None:
        self.server.handle(looks=looks)

    @precondition(lambda self: self.connection)
    @rule()
    def drop(self) -> None:
        assert self.connection is not None
        self.connection.broken = True
        self.connection = None
        self.client.end("the test drops it")
        self.send()

    @precondition(lambda self: self.connection and self.connection.side.is_greeted)
    @rule()
    def the_server_drains(self) -> None:
        assert self.connection is not None
        self.server.part(self.connection)

    @precondition(lambda self: self.connection)
    @rule()
    def ping(self) -> None:
        if self.client.side is not None and self.client.side.server is not None:
            answer: Future[dict[str, Any]] = Future()
            self.client.ping(answer)
            self.send()
            assert not answer.done()

    @rule()
    def look_for_trouble(self) -> None:
        if self.client.lost:
            with pytest.raises(ConnectionLost) as caught:
                self.client.raise_earlier_errors()
            self.lost += caught.value.unacknowledged
        self.client.raise_earlier_errors()

    @rule(target=flushes)
    def flush(self) -> Any:
        flushed: Future[None] = Future()
        self.client.flush(flushed)
        self.send()
        return multiple((flushed, list(self.told), self.lost + self.client.lost))

    @rule(flush=flushes)
    def a_flush_that_is_done_says_that_all_was_handled(self, flush: Any) -> None:
        flushed, told, lost = flush
        if flushed.done() and flushed.exception() is None:
            handled = {value for _, value in self.server.handled}
            assert len([value for value in told if value not in handled]) <= lost

    @invariant()
    def each_is_handled_once_in_the_order_of_sending(self) -> None:
        values = [value for _, value in self.server.handled]
        assert values == sorted(set(values))

    @invariant()
    def credit_is_kept_on_both_sides(self) -> None:
        if self.client.side is not None and self.client.side.server is not None:
            account = self.client.side.account
            assert 0 <= account.messages <= LIMITS.messages
            assert 0 <= account.bytes <= LIMITS.bytes
        if self.connection is not None:
            account = self.connection.side.account
            assert 0 <= account.messages <= LIMITS.messages
            assert 0 <= account.bytes <= LIMITS.bytes

    def teardown(self) -> None:
        """Let everything come to its end over a network that works."""
        while self.server.taken:  # of connections that are gone, too
            self.server.handle()
        while True:
            if self.connection is None:
                self.connect()
            elif self.connection.to_server:
                self.bytes_reach_the_server(1_000)
            elif self.server.taken:
                self.the_server_handles_a_delivery(looks=True)
            elif self.connection.to_client:
                self.bytes_reach_the_client(1_000)
            else:
                break
        self.look_for_trouble()
        assert not self.client.waiting
        assert self.client.unacknowledged == 0
        handled = {value for _, value in self.server.handled}
        assert len([value for value in self.told if value not in handled]) <= self.lost
        for value, answer in self.asked.items():
            error = answer.exception(timeout=0.0)
            if isinstance(error, ConnectionLost):
                continue
            assert value in self.server.asked
            if value % 2:
                assert isinstance(error, RemoteCallError)
                assert (error.kind, error.text) == ("ValueError", "odd")
            else:
                assert answer.result(timeout=0.0) == value * 10


TestNetwork = Network.TestCase


def tell_and_fail(client: Conversation, *kinds: str | None) -> list[Submission]:
    """Tell as many messages, which fail at the server by errors of these kinds."""
    connection = SimulatedConnection()
    server = SimulatedServer()
    splitter = Splitter(LIMITS.frame)

    def move() -> None:
        output, outcomes = client.take()
        connection.to_server += b"".join(output)
        for outcome in outcomes:
            outcome.complete()
        server.move(connection, len(connection.to_server))
        data = bytes(connection.to_client)
        connection.to_client.clear()
        for received in splitter.feed(data):
            client.receive(received)
        for outcome in client.take()[1]:
            outcome.complete()

    client.begin()
    move()
    told = [Submission(MessageKind.TELL, "first", (CODEC.encode(n),)) for n in range(len(kinds))]
    for submission in told:
        client.submit(submission)
    move()
    for kind, (_, delivery) in zip(kinds, server.taken, strict=True):
        if kind is not None:
            connection.say(connection.side.failed(delivery, kind, "no such type"))
        connection.say(connection.side.handled(delivery))
    move()
    return told


def test_the_error_of_what_was_told_and_failed_says_how_many_failed() -> None:
    client = Conversation(CODEC, SECRET)
    tell_and_fail(client, "CodecError", None, "MailboxFull")
    with pytest.raises(RemoteCallError) as raised:
        client.raise_earlier_errors()
    assert str(raised.value) == "CodecError: no such type (the first of 2 failures)"
    client.raise_earlier_errors()


def lines_of(call: Callable[[], object]) -> int:
    """Return how many lines of Python run in a call."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    gc.disable()  # a collection calls functions, too
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
        gc.enable()
    return count


def ask(client: Conversation) -> Future[Any]:
    answer = Future[Any]()
    client.submit(Submission(MessageKind.ASK, "first", (CODEC.encode(2),), answer=answer))
    return answer


def forget(client: Conversation, answer: Future[Any]) -> int:
    answer.cancel()
    return lines_of(lambda: client.forget(answer))


def test_an_ask_is_taken_back_at_the_same_cost_however_many_wait() -> None:
    costs = set()
    for waiting in (3, 1_000):
        client = Conversation(CODEC, SECRET)
        answers = [ask(client) for _ in range(waiting)]
        costs |= {forget(client, answer) for answer in (answers[-1], answers[0])}
        assert [*client.waiting] == answers[1:-1]
    assert len(costs) == 1


def test_an_ask_that_has_left_is_forgotten_at_the_same_cost_however_many_others_have() -> None:
    client = Conversation(CODEC, SECRET)
    server, connection, splitter = SimulatedServer(), SimulatedConnection(), Splitter(LIMITS.frame)

    def move() -> None:
        connection.to_server += b"".join(client.take()[0])
        server.move(connection, len(connection.to_server))
        for received in splitter.feed(bytes(connection.to_client)):
            client.receive(received)
        connection.to_client.clear()

    client.begin()
    move()
    answers = [ask(client) for _ in range(LIMITS.messages + 1)]
    move()
    assert [*client.waiting] == answers[-1:]
    assert client.outstanding == len(answers)
    flushed = Future[None]()
    client.flush(flushed)
    forget(client, answers.pop())  # the one that waits: from here on the flush looks at the others
    *costs, last = [forget(client, answer) for answer in answers]
    assert len({*costs}) == 1
    assert last > costs[0], "it completes the flush"
    ((done, _, error),) = client.take()[1]
    assert (done, error) == (flushed, None)
    while server.taken:
        server.handle()
    move()
    assert client.outstanding == 0
    assert not client._wanted
