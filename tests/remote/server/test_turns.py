"""Work for one client is done in slices, between which other clients have turns."""

from collections.abc import Generator
from types import SimpleNamespace
from typing import Any

import pytest

from callboard import Actor, BoundedMailbox, MailboxFull
from callboard.channels import Task
from callboard.remote.errors import CodecError
from callboard.remote.protocol import requests
from callboard.remote.protocol.kinds import MessageKind, Rejected
from callboard.remote.protocol.requests import Layout, UploadRows
from callboard.remote.protocol.server_side import ClientRequest, Delivery
from callboard.remote.server.client_actor import ClientActor
from callboard.remote.staging.entries import ActorEntry
from callboard.remote.staging.stager import Stager
from callboard.remote.staging.targets import counting_rows
from callboard.remote.wire.codec import Codec
from callboard.testing import ManualSystem

CODEC = Codec()
LARGE = CODEC.encode([{}] * 200_000)


class Taking(Actor[Any]):
    """Notes how long the lists are, and what else comes."""

    def __init__(self, seen: list[Any]) -> None:
        self.seen = seen

    def receive(self, message: Any) -> None:
        self.seen.append(len(message) if isinstance(message, list) else message)


class FakePeer:
    """Notes what it is to say, with its name."""

    name = "fake"
    is_gone = False

    def __init__(self, said: list[Any], name: str) -> None:
        self.said, self.name = said, name

    def note_handled(self, request: Any) -> None:
        self.said.append((self.name, "handled"))

    def answer(self, request: Any, value: Any) -> None:
        self.said.append((self.name, value))

    def fail(self, request: Any, error: BaseException) -> None:
        self.said.append((self.name, type(error)))

    def reject(self, error: Rejected) -> None:
        self.said.append((self.name, "rejected"))


def told(body: bytes, kind: MessageKind = MessageKind.TELL, rows: int = 1) -> Delivery:
    return Delivery(kind, 1, 0, rows, body, len(body))


def run(system: ManualSystem) -> None:
    """Run until nothing is left to do; a pause of no time ends when time goes on."""
    while system.run_until_idle():
        system.advance(0.001)


@pytest.mark.parametrize("kind", [MessageKind.TELL, MessageKind.TELL_MANY])
def test_a_small_message_overtakes_a_large_one_of_another_client(kind: MessageKind) -> None:
    seen: list[Any] = []
    said: list[Any] = []
    body, rows = LARGE, 1
    if kind is MessageKind.TELL_MANY:
        body, rows = CODEC.encode_rows([[{}] * 100_000] * 2), 2
    with ManualSystem() as system:
        entries = [ActorEntry(system.spawn(Taking, seen))]
        peers: list[Any] = [FakePeer(said, name) for name in "ab"]
        first, second = (system.spawn(ClientActor, peer, entries, CODEC) for peer in peers)
        first.tell([told(body, kind, rows), told(CODEC.encode("behind it"))])
        second.tell([told(CODEC.encode("small"))])
        run(system)
        assert seen[0] == "small"
        assert seen[1:] in ([200_000, "behind it"], [100_000, 100_000, "behind it"])
        assert said[0] == ("b", "handled")
        assert said.count(("a", "handled")) == 2


def test_an_error_in_a_large_message_fails_it_alone() -> None:
    seen: list[Any] = []
    said: list[Any] = []
    with ManualSystem() as system:
        entries = [ActorEntry(system.spawn(Taking, seen))]
        peer: Any = FakePeer(said, "a")
        client = system.spawn(ClientActor, peer, entries, CODEC)
        client.tell([told(LARGE + b"\1"), told(CODEC.encode("behind it"))])
        run(system)
    assert seen == ["behind it"]
    assert said == [("a", CodecError), ("a", "handled"), ("a", "handled")]


@pytest.mark.parametrize(
    ("refused", "error"), [(b"\xc1", CodecError), (CODEC.encode("too much"), MailboxFull)]
)
def test_credit_of_a_refusal_keeps_its_place(refused: bytes, error: type[Exception]) -> None:
    seen: list[Any] = []
    said: list[Any] = []
    with ManualSystem() as system:
        full = BoundedMailbox(1, overflow="fail")
        entries = [ActorEntry(system.spawn(Taking, seen, mailbox=full))]
        peer: Any = FakePeer(said, "a")
        client = system.spawn(ClientActor, peer, entries, CODEC)
        client.tell([told(CODEC.encode("before it")), told(refused)])
        assert system.run_until(lambda: bool(said))
        assert said == [("a", error)]
        assert not seen
        run(system)
    assert seen == ["before it"]
    assert said[1:] == [("a", "handled"), ("a", "handled")]


class Sleeping(Task):
    """Is there while messages come."""

    async def run(self) -> None:
        await self.sleep(10)


def test_a_message_that_a_task_gets_and_that_cannot_be_decoded_fails_alone() -> None:
    said: list[Any] = []
    with ManualSystem() as system:
        entries = [ActorEntry(system.spawn(Sleeping))]
        peer: Any = FakePeer(said, "a")
        client = system.spawn(ClientActor, peer, entries, CODEC)
        client.tell([told(b"\xc1"), told(CODEC.encode("no task takes it"))])
        run(system)
    assert said == [("a", CodecError), ("a", "handled"), ("a", TypeError), ("a", "handled")]


class FakeStore:
    """Keeps what is added, and has a part for each upload."""

    limits = SimpleNamespace(staged_age=3600.0)

    def __init__(self) -> None:
        self.added: list[tuple[int, int | None]] = []
        self.dropped: list[Any] = []

    def begin(self, begun: Any, entry: str) -> Any:
        return SimpleNamespace(trouble=None, upload=begun.upload)

    def add(self, part: Any, data: UploadRows, found: int | None) -> None:
        if part.trouble is not None:
            raise part.trouble
        self.added.append((data.upload, found))

    def drop(self, part: Any, why: Exception) -> None:
        part.trouble = why
        self.dropped.append(part.upload)

    def commit(self, name: Any, winners: list[Any]) -> None:
        self.added.append((-1, len(winners)))


Staging = tuple[ManualSystem, Any, FakeStore]


@pytest.fixture
def staging() -> Generator[Staging, None, None]:
    store: Any = FakeStore()
    target: Any = SimpleNamespace(name="e", refuse_if_unfit=lambda: None)

    def counting(layout: Layout, payload: Any) -> Generator[None, None, int]:
        return counting_rows(CODEC, layout, payload)

    with ManualSystem() as system:
        stager = system.spawn(Stager, store, [target], lambda number: None, counting)
        yield system, stager, store


def request(kind: MessageKind, content: Any) -> ClientRequest:
    return ClientRequest(kind, 1, 1, 1, content)


def begin(upload: int) -> ClientRequest:
    name = requests.BatchName("j", 1)
    return request(MessageKind.BEGIN, requests.Begin(upload, 0, name, 0, upload))


def rows(upload: int, payload: bytes) -> ClientRequest:
    return request(MessageKind.DATA, UploadRows(upload, 0, Layout.ROWS, 1, payload))


SETS = CODEC.encode_rows([[set(), frozenset(), ()] * 20_000])


def test_small_rows_are_staged_while_large_ones_are_counted(staging: Staging) -> None:
    system, stager, store = staging
    said: list[Any] = []
    one, other = FakePeer(said, "a"), FakePeer(said, "b")
    for wanted in (begin(1), rows(1, SETS), rows(1, CODEC.encode_rows([{7}]))):
        stager.tell((one, wanted))
    for wanted in (begin(2), rows(2, CODEC.encode_rows([{7}, 8]))):
        stager.tell((other, wanted))
    run(system)
    assert store.added == [(2, 2), (1, 1), (1, 1)]
    assert [name for name, _ in said] == ["a", "b", "b", "a", "a"]


def test_messages_behind_large_rows_and_the_end_wait_for_them(staging: Staging) -> None:
    system, stager, store = staging
    said: list[Any] = []
    one = FakePeer(said, "a")
    for wanted in (begin(1), rows(1, SETS), rows(1, SETS), rows(1, CODEC.encode_rows([1]))):
        stager.tell((one, wanted))
    stager.tell((one, None))
    run(system)
    assert store.added == [(1, 1)] * 3
    assert store.dropped == [1], "as the client has disconnected"


def test_large_rows_that_cannot_be_read_end_their_upload_alone(staging: Staging) -> None:
    system, stager, store = staging
    said: list[Any] = []
    one = FakePeer(said, "a")
    bad = CODEC.encode_rows([[set()] * 20_000, {1}])[:-1] + b"\xc1"
    for wanted in (begin(1), begin(2), rows(1, bad), rows(1, SETS), rows(2, SETS)):
        stager.tell((one, wanted))
    run(system)
    assert store.dropped == [1]
    assert store.added == [(2, 1)]


def test_a_commit_of_many_winners_is_read_in_slices(staging: Staging) -> None:
    system, stager, store = staging
    said: list[Any] = []
    one, other = FakePeer(said, "a"), FakePeer(said, "b")
    winners = [[at, 1, 1] for at in range(40_000)]
    for body in (CODEC.encode(["j", winners]), CODEC.encode(["j", winners, 1])):
        stager.tell((one, request(MessageKind.COMMIT, requests.PackedCommit(CODEC, 1, body))))
    stager.tell((other, begin(2)))
    run(system)
    assert store.added == [(-1, 40_000)]
    assert said == [("b", None), ("a", None), ("a", "rejected")]
