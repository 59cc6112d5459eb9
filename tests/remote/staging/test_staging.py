"""Uploads, commits and aborts over a real socket, and refusals."""

from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from callboard import ActorSystem
from callboard.remote import (
    Connection,
    KeyedRow,
    RowKey,
    Server,
    StagedAttempt,
    StagingLimits,
    connect,
    serve_entries,
    with_keys,
)
from callboard.remote.client.writer import UploadConnection, UploadRequest
from callboard.remote.errors import (
    BatchCommitted,
    CommitConflict,
    ConnectionLost,
    NotUploaded,
    RemoteError,
    UploadRefused,
)
from callboard.remote.protocol import requests
from callboard.remote.protocol.conversation import Conversation
from callboard.remote.protocol.kinds import GoodbyeReason, MessageKind
from callboard.remote.wire.codec import Codec
from callboard.streams import entry
from tests.remote.conftest import DEADLINE, Notes, RawClient, Start, eventually, hello, logged


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def server(start: Start, state: Path) -> Server:
    return start(state=state)


def upload(
    connection: Connection, rows: list[Any], partition: int = 0, attempt: int = 0, **more: Any
) -> StagedAttempt:
    options: dict[str, Any] = {"entry": "notes", "job": "job", "batch": 1, **more}
    with connection.upload(partition=partition, attempt=attempt, **options) as upload:
        upload.send_many(rows)
    assert upload.staged is not None
    return upload.staged


def break_off(server: Server) -> None:
    """Break all connections. On the loop's thread."""
    for peer in list(server._peers):
        peer.abort("the test does it")


def notes(connection: Connection) -> Any:
    return connection.ref("notes").ask("all").result(DEADLINE)


def applied(connection: Connection) -> None:
    """Wait until all that was committed is applied."""
    eventually(lambda: connection.health().result(DEADLINE)["unapplied"] == 0, "it is applied")


def test_rows_arrive_after_the_commit_by_partition_and_row(connection: Connection) -> None:
    later = upload(connection, [*range(3_000, 5_000)], partition=1)
    loser = upload(connection, [7], partition=0, attempt=8)
    first = upload(connection, [*range(3_000)], partition=0, attempt=9)
    assert (loser, first) == (StagedAttempt(0, 8, 1), StagedAttempt(0, 9, 3_000))
    assert notes(connection) == []
    connection.commit("job", 1, [later, first])
    applied(connection)
    assert notes(connection) == [*range(5_000)]


def test_batches_are_applied_in_the_order_of_their_commits(connection: Connection) -> None:
    winners = {batch: upload(connection, [batch] * 3, batch=batch) for batch in (1, 2, 3)}
    for batch in (3, 1, 2):
        connection.commit("job", batch, [winners[batch]])
    applied(connection)
    assert notes(connection) == [3, 3, 3, 1, 1, 1, 2, 2, 2]


def test_a_commit_may_be_repeated(connection: Connection, caplog: pytest.LogCaptureFixture) -> None:
    first = upload(connection, ["a"], attempt=1)
    second = upload(connection, ["b"], attempt=2)
    connection.commit("job", 1, [first])
    connection.commit("job", 1, [first])
    with pytest.raises(CommitConflict, match="batch 1 of the job 'job' is committed with other"):
        connection.commit("job", 1, [second])
    assert logged(caplog, "commit conflict")()
    applied(connection)
    assert notes(connection) == ["a"]


def test_late_rows_are_refused(connection: Connection, caplog: pytest.LogCaptureFixture) -> None:
    winner = upload(connection, ["a"])
    late = connection.upload("notes", job="job", batch=1, attempt=5)
    late.__enter__()
    connection.commit("job", 1, [winner])
    late.send_many(["late"])
    with pytest.raises(BatchCommitted, match="later rows are refused"):
        late.__exit__(None, None, None)
    with pytest.raises(BatchCommitted):
        upload(connection, ["late"], attempt=6)
    assert connection.health().result(DEADLINE)["staged_late"] == 3
    assert logged(caplog, "late rows refused")()
    applied(connection)
    assert notes(connection) == ["a"]


def test_an_abort_fences_off_what_was_begun_and_not_the_batch(connection: Connection) -> None:
    before = upload(connection, ["before"], attempt=1)
    begun = connection.upload("notes", job="job", batch=1, attempt=2)
    begun.__enter__()
    connection.abort("job", 1)
    with pytest.raises(UploadRefused, match="was aborted"):
        begun.__exit__(None, None, None)
    with pytest.raises(NotUploaded, match=r"attempt 1 at partition 0 of batch 1 .* is not staged"):
        connection.commit("job", 1, [before])
    after = upload(connection, ["after"], attempt=1)
    connection.commit("job", 1, [after])
    with pytest.raises(BatchCommitted, match="cannot be aborted"):
        connection.abort("job", 1)
    applied(connection)
    assert notes(connection) == ["after"]


def test_a_winner_must_be_staged_with_that_many_rows(connection: Connection) -> None:
    staged = upload(connection, ["a", "b"])
    open_one = connection.upload("notes", job="job", batch=1, partition=1)
    open_one.__enter__()
    for winner, text in [
        (StagedAttempt(0, 0, 3), "is staged with 2 rows, not with 3"),
        (StagedAttempt(0, 4, 2), "attempt 4 at partition 0 of batch 1 .* is not staged"),
        (StagedAttempt(1, 0, 0), "has not ended"),
    ]:
        with pytest.raises(NotUploaded, match=text):
            connection.commit("job", 1, [winner])
    with pytest.raises(ValueError, match="partition 0 has two winners"):
        connection.commit("job", 1, [staged, StagedAttempt(0, 1, 1)])
    connection.commit("job", 1, [staged])


def test_an_attempt_is_staged_once(connection: Connection) -> None:
    upload(connection, ["a"])
    with pytest.raises(UploadRefused, match="is already staged: each attempt needs a new id"):
        upload(connection, ["a"])


def test_record_batches_are_staged(connection: Connection, server: Server) -> None:
    pa = pytest.importorskip("pyarrow")
    batch = pa.RecordBatch.from_pydict({"n": [*range(100)]})
    with connection.upload("others", job="job") as upload:
        upload.send_batch(batch)
        upload.send_batch(batch.slice(0, 0))
        upload.send_batch(batch.slice(0, 7))
    assert upload.staged == StagedAttempt(0, 0, 107)
    connection.commit("job", 0, [upload.staged])
    applied(connection)
    others = server._entries["others"].ask("all").result(DEADLINE)
    assert [each.num_rows for each in others] == [100, 7]


def test_an_actor_gets_keys_if_it_is_served_with_them(tmp_path: Path, state: Path) -> None:
    with ActorSystem(workers=1) as system:
        ref = system.spawn(Notes)
        built = serve_entries({"notes": with_keys(ref)})
        served = Server(system, built, f"unix:{tmp_path}/k", state=state)
        with connect(str(served.address), timeout=DEADLINE) as connection:
            connection.ref("notes").tell("plain")
            connection.flush()
            winners = [upload(connection, ["a"] * 1_500, partition=part) for part in (0, 3)]
            connection.commit("job", 1, winners)
            applied(connection)
        found = ref.ask("all").result(DEADLINE)
        served.stop()
    assert found[0] == "plain"
    assert found[1:] == [
        KeyedRow(RowKey("job", 1, part, row), "a") for part in (0, 3) for row in range(1_500)
    ]


def test_staged_rows_need_no_credit_and_spill(start: Start, state: Path, tmp_path: Path) -> None:
    staging = StagingLimits(staged_memory=150_000, staged_bytes=10**7)
    served = start(state=state, staging=staging)
    with connect(str(served.address), timeout=DEADLINE) as connection:
        rows = ["x" * 100] * 20_000
        winner = upload(connection, rows)
        health = connection.health().result(DEADLINE)
        assert 0 < health["staged_memory"] <= 150_000
        assert health["staged_disk"] > 1_500_000
        assert len(list((state / "staged").iterdir())) == 1
        connection.commit("job", 1, [winner])
        applied(connection)
        assert notes(connection) == rows
        health = connection.health().result(DEADLINE)
        assert (health["staged_memory"], health["staged_disk"]) == (0, 0)
        assert list((state / "staged").iterdir()) == []


def test_beyond_the_bytes_on_disk_rows_are_refused(start: Start, state: Path) -> None:
    served = start(state=state, staging=StagingLimits(staged_memory=0, staged_bytes=50_000))
    with connect(str(served.address), timeout=DEADLINE) as connection:
        kept = upload(connection, ["x" * 40_000])
        with pytest.raises(UploadRefused, match="in files, where the limit is 50000"):
            upload(connection, ["x" * 40_000], partition=1)
        connection.commit("job", 1, [kept])
        upload(connection, ["x" * 40_000], batch=2)


def test_beyond_the_number_of_attempts_they_are_refused(start: Start, state: Path) -> None:
    served = start(state=state, staging=StagingLimits(staged_attempts=2))
    with connect(str(served.address), timeout=DEADLINE) as connection:
        winners = [upload(connection, ["a"], partition=part) for part in range(2)]
        with pytest.raises(UploadRefused, match="2 attempts are staged, which is the limit"):
            upload(connection, ["a"], partition=2)
        connection.commit("job", 1, winners)
        upload(connection, ["a"], batch=2)


def test_a_lost_clients_open_uploads_are_dropped(server: Server, connection: Connection) -> None:
    done = upload(connection, ["kept"])
    with connect(str(server.address), timeout=DEADLINE) as other:
        begun = other.upload("notes", job="job", batch=1, partition=1)
        begun.__enter__()
        begun.send_many(["dropped"] * 10)
    eventually(
        lambda: connection.health().result(DEADLINE)["staged_memory"] < 10, "the rows are dropped"
    )
    connection.commit("job", 1, [done])


def test_a_connection_that_breaks_fails_the_upload(server: Server, connection: Connection) -> None:
    begun = connection.upload("notes", job="job", batch=1)
    begun.__enter__()
    begun.send_many(["a"])
    server._io.call(partial(break_off, server))
    endless = (["b"] for _ in count())
    with pytest.raises(ConnectionLost):
        deque(map(begun.send_many, endless), maxlen=0)
    with pytest.raises(ConnectionLost):
        begun.__exit__(None, None, None)
    assert upload(connection, ["again"], attempt=1) == StagedAttempt(0, 1, 1)


def test_a_lost_server_ends_its_upload(server: Server, connection: Connection) -> None:
    begun = connection.upload("notes", job="job", batch=1)
    begun.__enter__()
    server.stop()
    eventually(lambda: connection._own_session._conversation.side is None, "the client has noticed")
    with pytest.raises(ConnectionLost, match="in the middle of an upload"):
        begun.send_many(["a"])
    with pytest.raises(ConnectionLost, match="in the middle of an upload"):
        begun.__exit__(None, None, None)


def test_staged_rows_waiting_for_credit_fail_with_their_connection() -> None:
    talk = Conversation(Codec(), b"")
    talk.begin()
    upload_connection = UploadConnection()
    upload_connection.side = talk.side
    data = UploadRequest(MessageKind.DATA, b"rows", upload=upload_connection)
    others = UploadRequest(MessageKind.ABORT, b"a batch")
    for submission in (data, others):
        talk.submit(submission)
    talk.end("the test ends it")
    ((failed, _, error),) = talk.take()[1]
    assert failed is data.sent
    assert isinstance(error, ConnectionLost)
    assert [*talk.waiting.values()] == [others]


def test_a_commit_is_repeated_over_new_connections(server: Server, connection: Connection) -> None:
    winner = upload(connection, ["a"])
    store = server._staging._store  # type: ignore[union-attr]
    commit, answers = store.commit, []

    def break_before_the_answer(*arguments: Any) -> Any:
        answers.append(commit(*arguments))
        if len(answers) == 1:
            server._io.call(partial(break_off, server))
        return answers[-1]

    store.commit = break_before_the_answer  # type: ignore[method-assign]
    connection.commit("job", 1, [winner])
    assert answers == [1, None]  # the second time it was done before
    assert server.health()["accepted"] == 2


def test_a_graphs_entry_takes_no_staged_rows(tmp_path: Path, state: Path) -> None:
    with ActorSystem(workers=1) as system:
        run = system.run(entry("numbers").map(str).collect())
        served = Server(system, serve_entries({"numbers": run}), f"unix:{tmp_path}/g", state=state)
        with (
            connect(str(served.address), timeout=DEADLINE) as connection,
            pytest.raises(UploadRefused, match="the graph's entry 'numbers' takes no staged rows"),
        ):
            upload(connection, [1], entry="numbers")
        served.stop()
        run.finish()


def test_without_a_state_directory_nothing_is_staged(start: Start) -> None:
    served = start()
    with connect(str(served.address), timeout=DEADLINE) as connection:
        for refused in (
            lambda: upload(connection, [1]),
            lambda: connection.commit("job", 1, []),
            lambda: connection.abort("job", 1),
        ):
            with pytest.raises(UploadRefused, match="start it with --state DIR"):
                refused()


def test_an_entry_that_is_not_there_is_named(connection: Connection) -> None:
    with pytest.raises(RemoteError, match="no entry point 'nobody'"):
        upload(connection, [1], entry="nobody")


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"batch": 2**63}, ValueError, "batch must be a whole number"),
        ({"job": ""}, ValueError, "1 to 1000 bytes"),
        ({"job": 3}, TypeError, "expected a job.s name as a string"),
        ({"partition": 2**32}, ValueError, "partition must be a whole number"),
        ({"attempt": -1}, ValueError, "attempt must be a whole number"),
    ],
)
def test_names_and_numbers_are_checked_at_the_call(
    options: dict[str, Any], error: type[Exception], said: str, connection: Connection
) -> None:
    with pytest.raises(error, match=said):
        upload(connection, [1], **options)


def test_the_ends_of_the_range_are_good_batches(connection: Connection) -> None:
    for batch in (-(2**63), 2**63 - 1):
        connection.commit("job", batch, [upload(connection, [batch], batch=batch)])
    applied(connection)
    assert notes(connection) == [-(2**63), 2**63 - 1]


# --- clients that do it wrong ---------------------------------------------------------------------

BEGIN = MessageKind.BEGIN.frame(0, 7, 0, 0, 1, rest=b"job")
ROWS = b"\0\x92\1\2"  # two rows


def data(rows: int, payload: bytes = ROWS, sequence: int = 0) -> bytes:
    return MessageKind.DATA.frame(7, sequence, requests.Layout.ROWS, rows, rest=payload)


def end(rows: int, payload: bytes = b"", difference: int = 0) -> bytes:
    return MessageKind.END.frame(7, rows, requests.payload_checksum(payload) ^ difference)


def failure(client: RawClient) -> str:
    received = client.receive()
    while received is not None and received.kind != MessageKind.FAILED:
        received = client.receive()
    assert received is not None
    return bytes(received.body).decode(errors="replace")


@pytest.mark.parametrize(
    ("frames", "said"),
    [
        (end(0), "no upload 7 is open"),
        (BEGIN + end(1), "expected 1 rows with the checksum 00000000, got 0 with 00000000"),
        (BEGIN + data(2) + end(2, ROWS, difference=1), "expected 2 rows with the checksum"),
        (BEGIN + data(2, sequence=1) + end(2, ROWS), "has 0 frames, but the frame 1 came"),
        (BEGIN + data(3) + end(3, ROWS), "expected 3 rows, as announced, got 2"),
        (BEGIN + data(1, b"\0\xc1") + end(1, b"\0\xc1"), "CodecError"),
        (BEGIN + BEGIN, "the upload 7 is already open"),
    ],
)
def test_a_wrong_frame_fails_its_upload(
    frames: bytes, said: str, raw: Callable[[], RawClient]
) -> None:
    client = raw()
    client.send(hello() + frames)
    assert said in failure(client)


@pytest.mark.parametrize(
    "unreadable",
    [
        MessageKind.BEGIN.frame(rest=b"\0\0"),
        MessageKind.BEGIN.frame(0x99, 7, 0, 0, 1, rest=b"job"),
        MessageKind.BEGIN.frame(0, 7, 0, 0, 1, rest=b"job\xff"),
        MessageKind.BEGIN.frame(0, 7, 0, 0, 1),
        MessageKind.DATA.frame(rest=b"\0" * 8 + b"\7" + b"\0" * 4),
        MessageKind.END.frame(rest=b"\0\0"),
        MessageKind.COMMIT.frame(0, rest=b"\x93\1\2\3"),
        MessageKind.COMMIT.frame(0, rest=b"\x92\xa1j\x91\x93\0\0\xff"),
        MessageKind.ABORT.frame(rest=b"\0" * 7),
        MessageKind.STAGED.frame(rest=b"\0" * 16),
    ],
)
def test_an_unreadable_message_ends_the_connection(
    unreadable: bytes, raw: Callable[[], RawClient]
) -> None:
    client = raw()
    client.send(hello() + unreadable)
    assert client.goodbye().reason.name == "PROTOCOL"


def test_staged_rows_end_with_the_server(start: Start, state: Path) -> None:
    staging = StagingLimits(staged_memory=0)
    served = start(state=state, staging=staging)
    with connect(str(served.address), timeout=DEADLINE) as connection:
        winner = upload(connection, ["a"])
    served.stop()
    assert list((state / "staged").iterdir()) != []
    served = start(state=state, staging=staging)
    assert list((state / "staged").iterdir()) == []
    with connect(str(served.address), timeout=DEADLINE) as connection, pytest.raises(NotUploaded):
        connection.commit("job", 1, [winner])


@pytest.mark.parametrize(
    ("winners", "said"),
    [
        (None, "expected the `staged` of uploads as winners, got None"),
        ([None], "expected the `staged` of an upload as a winner, got None"),
        ([(1, 2)], r"expected the `staged` of an upload as a winner, got \(1, 2\)"),
    ],
)
def test_a_wrong_winner_is_shown(connection: Connection, winners: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        connection.commit("job", 1, winners)


def test_a_jobs_name_is_a_text_that_can_be_sent(connection: Connection) -> None:
    for call in (
        lambda: connection.commit("\ud800", 1, []),
        lambda: connection.upload("notes", job="\ud800", batch=1),
    ):
        with pytest.raises(ValueError, match=r"encodable as UTF-8, got '\\ud800'"):
            call()


def test_one_client_is_refused_once_however_much_of_it_is_wrong(
    server: Server, raw: Callable[[], RawClient], caplog: pytest.LogCaptureFixture
) -> None:
    """All these commits are on their way before it hears that the first one was refused."""
    client = raw()
    bad = Codec().encode(["job", []])[:-1] + b"\xc1"
    client.send(hello() + MessageKind.COMMIT.frame(1, rest=bad) * 100)
    assert client.goodbye().reason == GoodbyeReason.PROTOCOL
    server.stop()
    refused = [record for record in caplog.records if "client refused" in record.getMessage()]
    assert (len(refused), server.health()["refused"]) == (1, 1)
