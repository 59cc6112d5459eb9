"""Staging over a network that chops, delays and drops connections, in front of the real store.

What was answered holds: a STAGED part has the rows that were sent, a commit's batch is in the
journal with its winners' rows and no others, and what broke in the middle of an upload fails it.
What was read of published rows has them, and who reads or releases others is told so.
"""

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from callboard.remote.client.writer import UploadConnection, UploadRequest
from callboard.remote.errors import (
    BatchCommitted,
    CommitConflict,
    ConnectionLost,
    NotPublished,
    NotUploaded,
    UploadRefused,
)
from callboard.remote.protocol.conversation import Conversation
from callboard.remote.protocol.kinds import Goodbye, MessageKind
from callboard.remote.protocol.requests import BatchName, Layout, StagedAttempt, payload_checksum
from callboard.remote.protocol.server_side import ClientRequest, Greeting
from callboard.remote.staging.persistent import PersistentActor
from callboard.remote.staging.service import PublicationReader
from callboard.remote.staging.stager import Stager
from callboard.remote.staging.targets import PersistentTarget
from callboard.remote.storage.journal import Journal, Publication
from callboard.remote.storage.outbox import Piece
from callboard.remote.storage.state_directory import StateDirectory
from callboard.remote.storage.store import Backlog, StagingLimits, StagingStore
from callboard.remote.wire.frames import Splitter
from tests.remote.network import CODEC, ENTRIES, LIMITS, SECRET, SimulatedConnection

chunk = st.integers(1, 300)
batches = st.integers(0, 3)


PIECES = [Piece(2, CODEC.encode_rows([0, 1])), Piece(3, CODEC.encode_rows([2, 3, 4]))]


class Publishing(PersistentActor):
    published: ClassVar[Any] = "columns that nobody looks at"


class Nobody:
    """In the place of a ref: nothing is applied here."""

    actor_class = Publishing
    _keeps_messages = True


class SimulatedPeer:
    """What the stager answers to, at the server's end of a connection."""

    name = "simulated"
    is_gone = False

    def __init__(self, connection: SimulatedConnection) -> None:
        self.connection = connection
        self.side = connection.side

    def answer(self, request: Any, value: Any) -> None:
        self.connection.say(self.side.answer(request, CODEC.encode(value)))

    def answer_staged(self, request: Any, rows: int) -> None:
        self.connection.say(self.side.staged(request, rows))

    def fail(self, request: Any, error: BaseException) -> None:
        self.connection.say(self.side.failed(request, type(error).__name__, str(error)))

    def note_handled(self, request: Any) -> None:
        self.connection.say(self.side.handled(request))


@dataclass
class Attempt:
    """An upload as the client has it."""

    batch: int
    partition: int
    number: int
    upload: UploadConnection
    begin: UploadRequest
    rows: list[int] = field(default_factory=list)
    frames: int = 0
    checksum: int = 0
    end: UploadRequest | None = None

    @property
    def winner(self) -> StagedAttempt:
        return StagedAttempt(self.partition, self.number, len(self.rows))

    @property
    def is_staged(self) -> bool:
        return self.end is not None and succeeded(self.end)


def succeeded(submission: UploadRequest) -> bool:
    assert submission.answer is not None
    return submission.answer.done() and submission.answer.exception() is None


class StagingNetwork(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.directory = StateDirectory(Path(self.folder.name) / "state")
        self.journal = Journal(self.directory.journal)
        self.store = StagingStore(
            self.directory,
            self.journal,
            Backlog(self.journal, ENTRIES, 0),
            lambda layout, payload: len(CODEC.decode_rows(payload)),
            StagingLimits(staged_memory=100),
        )
        targets = [PersistentTarget(name, Nobody, CODEC, 0) for name in ENTRIES]  # type: ignore[arg-type]
        self.stager = Stager(self.store, targets, lambda number: None)
        self.publication_reader = PublicationReader(self.journal, targets, lambda: None)
        self.journal.mark(0, {}, {entry: Publication(b"", PIECES) for entry in ENTRIES})
        self.readings: list[tuple[MessageKind, int, UploadRequest]] = []
        self.client = Conversation(CODEC, SECRET)
        self.connection: SimulatedConnection | None = None
        self.peer: SimulatedPeer | None = None
        self.splitter = Splitter(LIMITS.frame)
        self.waiting: list[tuple[SimulatedPeer, ClientRequest]] = []
        self.attempts: list[Attempt] = []
        self.row = 0
        self.commits: list[tuple[int, list[Attempt], UploadRequest]] = []
        self.told: list[UploadRequest] = []

    def send(self) -> None:
        output, outcomes = self.client.take()
        if self.connection is not None:
            self.connection.to_server += b"".join(output)
        for outcome in outcomes:
            outcome.complete()

    def submit(self, submission: UploadRequest) -> UploadRequest:
        self.client.submit(submission)
        self.send()
        return submission

    # --- the client -------------------------------------------------------------------------------

    @rule(batch=batches, partition=st.integers(0, 1), entry=st.sampled_from(ENTRIES))
    def begin(self, batch: int, partition: int, entry: str) -> None:
        number = len(self.attempts)
        upload = UploadConnection()
        numbers = number, partition, number, batch
        begin = UploadRequest(MessageKind.BEGIN, numbers, b"j", upload=upload, entry=entry)
        submission = self.submit(begin)
        self.attempts.append(Attempt(batch, partition, number, upload, submission))

    def open_attempts(self) -> list[Attempt]:
        return [each for each in self.attempts if succeeded(each.begin) and each.end is None]

    @precondition(lambda self: self.open_attempts())
    @rule(data=st.data(), count=st.integers(1, 4))
    def data(self, data: st.DataObject, count: int) -> None:
        self.add_rows(data.draw(st.sampled_from(self.open_attempts())), count)

    def add_rows(self, attempt: Attempt, count: int = 3) -> None:
        rows = [*range(self.row, self.row + count)]
        self.row += count
        payload = CODEC.encode_rows(rows)
        numbers = attempt.number, attempt.frames, Layout.ROWS, count
        data = UploadRequest(MessageKind.DATA, numbers, payload, upload=attempt.upload)
        self.told.append(self.submit(data))
        attempt.frames += 1
        attempt.rows += rows
        attempt.checksum = payload_checksum(payload, attempt.checksum)

    @precondition(lambda self: self.open_attempts())
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        self.end_it(data.draw(st.sampled_from(self.open_attempts())))

    def end_it(self, attempt: Attempt) -> None:
        numbers = attempt.number, len(attempt.rows), attempt.checksum
        attempt.end = self.submit(UploadRequest(MessageKind.END, numbers, upload=attempt.upload))

    @precondition(lambda self: any(attempt.is_staged for attempt in self.attempts))
    @rule(data=st.data(), repeats=st.integers(1, 2))
    def commit(self, data: st.DataObject, repeats: int) -> None:
        ready = sorted({attempt.batch for attempt in self.attempts if attempt.is_staged})
        batch = data.draw(st.sampled_from(ready))
        staged = {
            each.partition: each for each in self.attempts if each.batch == batch and each.is_staged
        }
        chosen = [staged[partition] for partition in sorted(staged)]
        body = CODEC.encode(["j", [list(each.winner) for each in chosen]])
        for _ in range(repeats):
            submission = self.submit(UploadRequest(MessageKind.COMMIT, (batch,), body))
            self.commits.append((batch, chosen, submission))

    @rule(batch=batches)
    def abort(self, batch: int) -> None:
        self.told.append(self.submit(UploadRequest(MessageKind.ABORT, (batch,), b"j")))

    @rule(
        kind=st.sampled_from([MessageKind.READ, MessageKind.READ, MessageKind.RELEASE]),
        entry=st.sampled_from(ENTRIES),
        row=st.integers(0, 6),
    )
    def read(self, kind: MessageKind, entry: str, row: int) -> None:
        submission = self.submit(UploadRequest(kind, (row,), entry=entry))
        self.readings.append((kind, row, submission))

    # --- the network ------------------------------------------------------------------------------

    @precondition(lambda self: self.connection is None)
    @rule()
    def connect(self) -> None:
        self.connection = SimulatedConnection()
        self.peer = SimulatedPeer(self.connection)
        self.splitter = Splitter(LIMITS.frame)
        self.client.begin()
        self.send()

    @precondition(lambda self: self.connection and self.connection.to_server)
    @rule(count=chunk)
    def bytes_reach_the_server(self, count: int) -> None:
        connection, peer = self.connection, self.peer
        assert connection is not None
        assert peer is not None
        data = bytes(connection.to_server[:count])
        del connection.to_server[:count]
        for received in connection.splitter.feed(data):
            event = connection.side.receive(received)
            if isinstance(event, Greeting):
                connection.splitter.limit = LIMITS.frame
                connection.say(connection.side.welcome({}))
            else:
                assert isinstance(event, ClientRequest)
                self.waiting.append((peer, event))

    @precondition(lambda self: self.waiting)
    @rule()
    def the_server_handles_a_request(self) -> None:
        peer, request = self.waiting.pop(0)
        if request is not None and request.kind.group == "publishing":
            self.publication_reader.receive((peer, request))  # type: ignore[arg-type]
        else:
            self.stager.receive((peer, request))

    @precondition(lambda self: self.connection and self.connection.to_client)
    @rule(count=chunk)
    def bytes_reach_the_client(self, count: int) -> None:
        assert self.connection is not None
        data = bytes(self.connection.to_client[:count])
        del self.connection.to_client[:count]
        for received in self.splitter.feed(data):
            assert not isinstance(self.client.receive(received), Goodbye)
            self.send()

    @precondition(lambda self: self.connection)
    @rule(times=st.integers(1, 3))
    def all_gets_through(self, times: int) -> None:
        """Let requests and answers arrive that are on their way."""
        assert self.connection is not None
        for _ in range(times):
            if self.connection.to_server:
                self.bytes_reach_the_server(10_000)
            while self.waiting:
                self.the_server_handles_a_request()
            if self.connection.to_client:
                self.bytes_reach_the_client(10_000)

    @rule(batch=batches, entry=st.sampled_from(ENTRIES), partition=st.integers(0, 2))
    def upload_a_whole_partition(self, batch: int, entry: str, partition: int) -> None:
        self.begin(batch, partition, entry)
        attempt = self.attempts[-1]
        for then in (self.add_rows, self.end_it):
            if self.connection is None:
                self.connect()
            self.all_gets_through(3)
            if succeeded(attempt.begin):
                then(attempt)
        self.all_gets_through(2)

    @precondition(lambda self: self.connection)
    @rule()
    def drop(self) -> None:
        assert self.connection is not None
        self.connection.broken = True
        self.waiting.append((self.peer, None))  # type: ignore[arg-type]
        self.connection = None
        self.client.end("the test drops it")
        self.send()

    # --- what holds -------------------------------------------------------------------------------

    @invariant()
    def what_was_answered_holds(self) -> None:
        for batch, chosen, submission in self.commits:
            winners = [each.winner for each in chosen]
            is_committed = self.journal.has_winners(BatchName("j", batch), winners)
            if not succeeded(submission):
                assert submission.answer is not None
                error = submission.answer.exception(0.0) if submission.answer.done() else None
                assert isinstance(error, None | NotUploaded | CommitConflict | ConnectionLost)
                assert not (is_committed and isinstance(error, NotUploaded | CommitConflict))
                continue
            assert is_committed
            rows = self.committed_rows(batch)
            assert rows == sorted(row for each in chosen for row in each.rows)

    @invariant()
    def what_was_read_was_published(self) -> None:
        for kind, row, submission in self.readings:
            assert submission.answer is not None
            if not submission.answer.done():
                continue
            error = submission.answer.exception(0.0)
            if error is not None:
                assert isinstance(error, NotPublished | ConnectionLost), error
            elif kind is MessageKind.READ:
                first, count, payload = submission.answer.result()
                assert row in CODEC.decode_rows(payload) == [*range(first, first + count)]
            else:
                assert row <= 5

    def committed_rows(self, batch: int) -> list[int]:
        found = []
        for number in range(1, self.journal.last + 1):
            if self.journal.name(number).batch == batch:
                for entry in self.journal.entries(number):
                    for frame in self.journal.frames(number, entry):
                        found += CODEC.decode_rows(frame.payload)
        return sorted(found)

    @invariant()
    def credit_is_kept_on_both_sides(self) -> None:
        if self.client.side is not None and self.client.side.server is not None:
            account = self.client.side.account
            assert 0 <= account.messages <= LIMITS.messages
            assert 0 <= account.bytes <= LIMITS.bytes

    def teardown(self) -> None:
        """Let everything come to its end over a network that works."""
        while True:
            if self.connection is None:
                self.connect()
            elif self.connection.to_server:
                self.bytes_reach_the_server(1_000)
            elif self.waiting:
                self.the_server_handles_a_request()
            elif self.connection.to_client:
                self.bytes_reach_the_client(1_000)
            else:
                break
        assert not self.client.waiting
        assert self.client.side is not None
        assert (self.client.side.account.messages, self.client.side.account.bytes) == (0, 0)
        self.what_was_answered_holds()
        for attempt in self.attempts:
            for submission in (attempt.begin, attempt.end):
                if submission is not None:
                    assert submission.answer is not None
                    error = submission.answer.exception(0.0)
                    assert isinstance(
                        error, None | ConnectionLost | UploadRefused | BatchCommitted
                    ), error
        assert self.client.lost == 0
        self.journal.close()
        self.directory.close()
        self.folder.cleanup()


TestStagingNetwork = StagingNetwork.TestCase
