"""Several servers as one: rows by their keys, and rows that count once."""

import asyncio
import pickle
from collections.abc import Callable
from operator import itemgetter
from typing import Any

import pytest

from callboard import CallboardError
from callboard.core.errors import ConfigError
from callboard.remote import (
    ShardAttempt,
    ShardedConnection,
    aconnect_sharded,
    connect,
    connect_sharded,
    shard_of,
)
from callboard.remote.errors import (
    BatchCommitted,
    CodecError,
    CommitConflict,
    ConnectionRejected,
    NotUploaded,
    StateError,
)
from callboard.remote.protocol.shard import Shard

SHARDS = 3
DEADLINE = 60.0
ROWS = [{"k": f"key {number % 40}", "n": number} for number in range(3000)]


def parts_of(rows: list[Any]) -> list[list[Any]]:
    return [[row for row in rows if shard_of(row["k"], SHARDS) == at] for at in range(SHARDS)]


def answers(connection: ShardedConnection, name: str) -> list[Any]:
    asked = connection.ref(name, by="k").ask_all("all")
    return [answer.result(DEADLINE) for answer in asked]


def applied(connection: ShardedConnection) -> list[Any]:
    """What the persistent actors have, when all that is committed is applied."""
    for shard in connection.shards:
        while shard.health().result(DEADLINE)["unapplied"]:
            pass
    return answers(connection, "kept")


# --- telling and asking ---------------------------------------------------------------------------


def test_rows_go_to_the_shards_of_their_keys_in_their_order(connection: ShardedConnection) -> None:
    notes = connection.ref("notes", by="k")
    notes.tell_many(ROWS[:2900])
    for row in ROWS[2900:]:
        notes.tell(row)
    connection.flush(DEADLINE)
    assert answers(connection, "notes") == parts_of(ROWS)
    assert all(parts_of(ROWS))
    for key in ("key 1", "key 2"):
        told = notes.ask("all", key=key).result(DEADLINE)
        assert [row for row in told if row["k"] == key] == [row for row in ROWS if row["k"] == key]


def test_a_key_may_be_a_functions(connection: ShardedConnection) -> None:
    rows = [(number, str(number)) for number in range(100)]
    notes = connection.ref("notes", by=itemgetter(0))
    notes.tell_many(iter(rows))
    connection.flush(DEADLINE)
    for at, told in enumerate(answers(connection, "notes")):
        assert told == [row for row in rows if shard_of(row[0], SHARDS) == at]
    assert notes.of_key(7) is notes.refs[shard_of(7, SHARDS)]


def test_rows_of_a_batch_go_where_single_rows_go(connection: ShardedConnection) -> None:
    pa = pytest.importorskip("pyarrow")
    notes = connection.ref("notes", by=["k", "n"])
    notes.send_batch(pa.RecordBatch.from_pylist(ROWS))
    connection.flush(DEADLINE)
    for at, told in enumerate(answers(connection, "notes")):
        assert told == [row for row in ROWS if shard_of((row["k"], row["n"]), SHARDS) == at]


def test_a_row_without_a_key_is_refused(connection: ShardedConnection) -> None:
    notes = connection.ref("notes", by="k")
    with pytest.raises(CodecError, match=r"a row has no 'k', which decides its shard: .'j': 1."):
        notes.tell({"j": 1})
    with pytest.raises(CodecError, match=r"a key must be .*, got a builtins\.list"):
        notes.tell_many([{"k": []}])
    with pytest.raises(TypeError, match=r"tell_many\(\) expects an iterable of rows, got 3"):
        notes.tell_many(3)  # type: ignore[arg-type]
    for by in (3, [], ["k", 3]):
        with pytest.raises((ConfigError, TypeError)):
            connection.ref("notes", by=by)  # type: ignore[arg-type]


def test_an_event_loop_is_not_blocked(connection: ShardedConnection) -> None:
    async def call(function: Callable[..., Any], *arguments: Any) -> None:
        function(*arguments)

    shard = connection.shards[0]
    calls: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
        ("upload", shard.upload("notes", job="job").__enter__, ()),
        ("PUBLISHED of 'notes'", shard.published("notes").latest, ()),
    ]
    twins: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
        ("flush", connection.flush, ()),
        ("commit", shard.commit, ("job", 1, [])),
        ("abort", shard.abort, ("job", 1)),
        ("close", connection.close, ()),
    ]
    for name, function, arguments in twins:
        advice = rf"{name}\(\) would block the event loop: await a{name}\(\)"
        with pytest.raises(CallboardError, match=advice):
            asyncio.run(call(function, *arguments))
    for what, function, arguments in calls:
        thread = what + r" would block the event loop: call it in a thread, by asyncio\.to_thread"
        with pytest.raises(CallboardError, match=thread):
            asyncio.run(call(function, *arguments))


def test_a_batch_is_committed_in_a_coroutine(servers: Any) -> None:
    async def main() -> list[int]:
        connection = await aconnect_sharded(servers.urls, timeout=DEADLINE)
        try:
            staged = await asyncio.to_thread(upload, connection, ROWS)
            await connection.acommit("job", 0, staged)
            await connection.aflush()
            await asyncio.to_thread(upload, connection, ROWS, batch=1)
            return await connection.aabort("job", 1)
        finally:
            await connection.aclose()

    assert asyncio.run(main()) == [0, 1, 2]
    with connect_sharded(servers.urls, timeout=DEADLINE) as connection:
        assert applied(connection) == parts_of(ROWS)


def test_it_can_be_pickled_with_its_refs(connection: ShardedConnection) -> None:
    copy = pickle.loads(pickle.dumps(connection))
    copy.ref("notes", by="k").tell_many(ROWS[:10])
    copy.flush(DEADLINE)
    assert answers(connection, "notes") == parts_of(ROWS[:10])
    copy.close()


# --- which shard a server is ----------------------------------------------------------------------


def test_a_server_in_anothers_place_is_refused(servers: Any) -> None:
    urls = servers.urls
    with pytest.raises(
        ConnectionRejected, match="expected shard 0/3, got a server that is shard 1/3"
    ):
        connect_sharded([urls[1], urls[0], urls[2]], timeout=DEADLINE)
    with pytest.raises(
        ConnectionRejected, match="expected shard 0/2, got a server that is shard 0/3"
    ):
        connect_sharded(urls[:2], timeout=DEADLINE)
    with connect(urls[1], timeout=DEADLINE) as plain:
        assert plain.health().result(DEADLINE)["shard"] == "1/3"


def test_a_server_that_comes_back_as_another_one_is_refused(servers: Any) -> None:
    connection = connect(servers.urls[0], shard="0/3", timeout=DEADLINE)
    for index in (0, 2):
        servers.stop(index)
    servers.urls[2] = servers.urls[0]
    servers.start(2)
    connection._own_session.closed.result(DEADLINE)
    with pytest.raises(
        ConnectionRejected, match="expected shard 0/3, got a server that is shard 2/3"
    ):
        connection.ref("notes").tell("lost")
    connection.close()


def test_a_server_that_says_no_shard_is_refused(servers: Any) -> None:
    servers.stop(0)
    (servers.folder / "state-0" / "journal.db").unlink()
    servers.start(0, keyed=False)
    with pytest.raises(
        ConnectionRejected, match="expected shard 0/3, got a server that is no shard"
    ):
        connect_sharded(servers.urls, timeout=DEADLINE)


def test_the_state_of_another_shard_is_refused(servers: Any) -> None:
    servers.stop(0)
    with pytest.raises(StateError, match="belongs to shard 0/3, not to shard 0/4"):
        servers.start(0, "0/4")
    servers.stop(0)
    with pytest.raises(StateError, match="belongs to shard 0/3, not to one without it"):
        servers.start(0, keyed=False)
    servers.stop(0)
    servers.start(0)
    connect(servers.urls[0], shard="0/3", timeout=DEADLINE).close()


def test_the_state_of_a_plain_server_is_refused_by_a_shard(servers: Any) -> None:
    servers.stop(0)
    (servers.folder / "state-0" / "journal.db").unlink()
    servers.start(0, keyed=False)
    servers.stop(0)
    with pytest.raises(StateError, match="belongs to a server without --shard, not to shard 0/3"):
        servers.start(0)


@pytest.mark.parametrize("shards", [0, -1, True, "3", None])
def test_the_shard_of_no_number_of_shards_is_an_error(shards: Any) -> None:
    with pytest.raises(
        ValueError, match=f"the number of shards must be a whole number.*{shards!r}"
    ):
        shard_of("key", shards)


@pytest.mark.parametrize("text", ["", "1", "3/3", "-1/3", "0/0", "1/2/3", "0/65537", "x/1", 3])
def test_a_wrong_shard_is_refused(text: Any) -> None:
    with pytest.raises(ConfigError, match="shard"):
        Shard.parse(text)


def test_no_addresses_are_no_shards() -> None:
    wrong: tuple[Any, ...] = ([], "unix:one")
    for urls in wrong:
        with pytest.raises(ConfigError, match="expected the addresses of 1 to 65536 servers"):
            connect_sharded(urls)


# --- rows that count once -------------------------------------------------------------------------


def upload(connection: ShardedConnection, rows: list[Any], **options: Any) -> list[ShardAttempt]:
    with connection.upload("kept", by="k", job="job", **options) as upload:
        upload.send_many(rows)
    return upload.staged


def test_staged_rows_count_once_on_the_shards_of_their_keys(connection: ShardedConnection) -> None:
    winners = upload(connection, ROWS[:1500]) + upload(connection, ROWS[1500:], partition=1)
    assert sum(winner.rows for winner in winners) == len(ROWS)
    connection.commit("job", 0, winners)
    connection.commit("job", 0, winners)
    assert applied(connection) == parts_of(ROWS)
    with pytest.raises(BatchCommitted, match="is committed on every shard"):
        connection.abort("job", 0)


def test_a_shard_without_rows_commits_the_batch_all_the_same(connection: ShardedConnection) -> None:
    rows = [row for row in ROWS if shard_of(row["k"], SHARDS) == 1]
    winners = upload(connection, rows)
    assert [winner.shard for winner in winners] == [1]
    connection.commit("job", 0, winners)
    with pytest.raises(BatchCommitted):
        connection.abort("job", 0)


@pytest.mark.parametrize("done", [[0], [1], [0, 2], [2, 1]])
def test_after_some_commits_the_other_shards_get_their_rows(
    connection: ShardedConnection, servers: Any, done: list[int]
) -> None:
    """As if the driver had ended between two commits."""
    winners = upload(connection, ROWS, attempt=1)
    kept = [winner for winner in winners if winner.shard in done]
    connection.commit("job", 0, kept, shards=done)
    with connect_sharded(servers.urls, timeout=DEADLINE) as again:
        left = again.abort("job", 0)
        assert left == [shard for shard in range(SHARDS) if shard not in done]
        winners = upload(again, ROWS[::-1], attempt=2, shards=left)
        assert {winner.shard for winner in winners} == set(left)
        again.commit("job", 0, winners, shards=left)
    for at, (kept_rows, rows) in enumerate(zip(applied(connection), parts_of(ROWS), strict=True)):
        assert kept_rows == (rows[::-1] if at in left else rows)


@pytest.mark.parametrize("done", [[], [0], [1, 2], [0, 1, 2]])
def test_a_repeated_batch_skips_some_shards(connection: ShardedConnection, done: list[int]) -> None:
    winners = upload(connection, ROWS, attempt=1)
    kept = [winner for winner in winners if winner.shard in done]
    connection.commit("job", 0, kept, shards=done)
    for attempt in (2, 3):
        with connection.upload(
            "kept", by="k", job="job", attempt=attempt, skip_committed=True
        ) as repeated:
            repeated.send_many(ROWS)
        connection.commit("job", 0, repeated.staged, skip_committed=True)
        assert repeated.committed == {*done} if attempt == 2 else {*range(SHARDS)}
    assert applied(connection) == parts_of(ROWS)


def test_a_commit_with_other_winners_skips_no_shard(connection: ShardedConnection) -> None:
    winners = upload(connection, ROWS)
    connection.commit("job", 0, winners)
    with pytest.raises(CommitConflict, match="than the 0 given"):
        connection.commit("job", 0, [])
    other = [winner._replace(attempt=7) for winner in winners]
    with pytest.raises(CommitConflict, match="than the 1 given"):
        connection.commit("job", 0, other, skip_committed=True)


def test_a_server_gone_in_a_commit_gets_rows(connection: ShardedConnection, servers: Any) -> None:
    winners = upload(connection, ROWS, attempt=1)
    servers.stop(1)
    servers.start(1)
    with pytest.raises(NotUploaded):
        connection.commit("job", 0, winners)
    left = connection.abort("job", 0)
    assert left == [1]
    connection.commit("job", 0, upload(connection, ROWS, attempt=2, shards=left), shards=left)
    assert applied(connection) == parts_of(ROWS)


def test_an_earlier_driver_commits_nothing_that_was_aborted(
    connection: ShardedConnection, servers: Any
) -> None:
    winners = upload(connection, ROWS, attempt=1)
    with connect_sharded(servers.urls, timeout=DEADLINE) as later:
        left = later.abort("job", 0)
        with pytest.raises(NotUploaded):
            connection.commit("job", 0, winners)
        later.commit("job", 0, upload(later, ROWS, attempt=2), shards=left)
    assert applied(connection) == parts_of(ROWS)


def test_record_batches_are_staged_in_parts(connection: ShardedConnection) -> None:
    pa = pytest.importorskip("pyarrow")
    with connection.upload("kept", by="k", job="job") as upload:
        upload.send_batch(pa.RecordBatch.from_pylist(ROWS[:100]))
        upload.send_many(ROWS[100:200])
    connection.commit("job", 0, upload.staged)
    assert applied(connection) == parts_of(ROWS[:200])


def test_a_winner_of_a_shard_that_is_not_meant_is_an_error(connection: ShardedConnection) -> None:
    winner = ShardAttempt(2, 0, 0, 1)
    with pytest.raises(
        ValueError, match=r"expected winners of the shards \[0\], got one of shard 2"
    ):
        connection.commit("job", 0, [winner], shards=[0])
