"""Staged rows, wrong ones, and the mailboxes that rows go through."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from callboard import Actor, ActorSystem, BoundedMailbox, PriorityMailbox
from callboard.remote import Connection, Server, connect, serve_entries
from callboard.remote.errors import CodecError, UploadRefused
from tests.remote.conftest import DEADLINE, eventually


class Keeps(Actor[Any]):
    def __init__(self, got: list[Any]) -> None:
        self.got = got

    def receive(self, message: Any) -> None:
        self.got.append(message)


class Lots(Keeps):
    """Takes in lots what it is told, and none of it alone."""

    def receive(self, message: Any) -> None:
        raise AssertionError(f"{message!r} came alone")

    def receive_many(self, messages: list[Any]) -> None:
        self.got += messages


@contextmanager
def served(
    tmp_path: Path, cls: type[Keeps], **options: Any
) -> Iterator[tuple[Connection, list[Any]]]:
    got: list[Any] = []
    with ActorSystem() as system:
        entries = serve_entries({"rows": system.spawn(cls, got, **options)})
        server = Server(system, entries, f"unix:{tmp_path}/s", state=tmp_path / "state")
        with connect(str(server.address), timeout=DEADLINE) as connection:
            yield connection, got
        server.stop()


def commit(connection: Connection, rows: Any) -> None:
    with connection.upload("rows", job="job", batch=1, partition=0, attempt=0) as upload:
        upload.send_many(rows)
    assert upload.staged is not None
    connection.commit("job", 1, [upload.staged])
    eventually(lambda: connection.health().result(DEADLINE)["unapplied"] == 0, "it is applied")


def test_an_actor_that_takes_lots_gets_staged_and_told_rows_so(tmp_path: Path) -> None:
    with served(tmp_path, Lots) as (connection, got):
        connection.ref("rows").tell_many(range(10))
        connection.flush(DEADLINE)
        commit(connection, range(10, 3_000))
        assert got == [*range(3_000)]


def test_rows_wait_for_room_however_impatient_the_sender(tmp_path: Path) -> None:
    mailbox = BoundedMailbox(2, timeout=1e-9)
    with served(tmp_path, Keeps, mailbox=mailbox) as (connection, got):
        commit(connection, range(3_000))
        assert got == [*range(3_000)]


def test_a_batch_is_applied_when_a_priority_mailbox_is_empty(tmp_path: Path) -> None:
    mailbox = PriorityMailbox(lambda row: -row)
    with served(tmp_path, Keeps, mailbox=mailbox) as (connection, got):
        commit(connection, range(3_000))
        assert sorted(got) == [*range(3_000)]


@pytest.mark.parametrize("overflow", ["fail", "drop_newest", "drop_oldest"])
def test_a_mailbox_that_would_lose_rows_takes_none(tmp_path: Path, overflow: Any) -> None:
    mailbox = BoundedMailbox(1_000, overflow)
    with served(tmp_path, Keeps, mailbox=mailbox) as (connection, got):
        with pytest.raises(UploadRefused, match="'rows' drops or refuses messages"):
            commit(connection, range(10))
        assert got == []


def test_a_table_is_refused_where_rows_or_messages_are_meant(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"n": [1, 2]})
    with served(tmp_path, Keeps) as (connection, got):
        with pytest.raises(
            TypeError, match=r"send_many\(\) expects .* rows, got one Table: give it"
        ):
            commit(connection, table)
        with connection.upload("rows", job="other") as upload:
            with pytest.raises(CodecError, match=r"takes a pyarrow.RecordBatch, not a dict"):
                upload.send_batch({"n": [1, 2]})
            upload.send_batch(pa.record_batch({"n": [1]}))
        assert upload.staged is not None
        assert upload.staged.rows == 1
        ref = connection.ref("rows")
        with pytest.raises(
            TypeError, match=r"tell_many\(\) expects .* messages, got one Table: give"
        ):
            ref.tell_many(table)
        assert got == []
