"""Staged rows, wrong ones, and the mailboxes that rows go through."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from callboard import Actor, BoundedMailbox, PriorityMailbox
from callboard.remote.errors import CodecError, UploadRefused
from tests.remote.conftest import DEADLINE
from tests.remote.staging.served import Served, applied, commit

got: list[Any] = []


class Keeps(Actor[Any]):
    def receive(self, message: Any) -> None:
        got.append(message)


class Chunks(Actor[Any]):
    """Takes in chunks what it is told, and none of it alone."""

    def receive(self, message: Any) -> None:
        raise AssertionError(f"{message!r} came alone")

    def receive_many(self, messages: list[Any]) -> None:
        got.extend(messages)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    got.clear()
    served = Served(tmp_path, Keeps)
    yield served
    served.end()


def test_an_actor_that_takes_chunks_gets_staged_and_told_rows(served: Served) -> None:
    connection = served.start(Chunks)
    connection.ref("it").tell_many(range(10))
    connection.flush(DEADLINE)
    commit(connection, 1, range(10, 3_000))
    applied(connection)
    assert got == [*range(3_000)]


@pytest.mark.parametrize(
    "mailbox", [BoundedMailbox(2, timeout=1e-9), PriorityMailbox(lambda row: -row)]
)
def test_rows_wait_for_room_or_an_empty_mailbox(served: Served, mailbox: Any) -> None:
    connection = served.start(mailbox=mailbox)
    commit(connection, 1, range(3_000))
    applied(connection)
    assert sorted(got) == [*range(3_000)]
    assert got == sorted(got) or isinstance(mailbox, PriorityMailbox)


@pytest.mark.parametrize("overflow", ["fail", "drop_newest", "drop_oldest"])
def test_a_mailbox_that_would_lose_rows_takes_none(served: Served, overflow: Any) -> None:
    connection = served.start(mailbox=BoundedMailbox(1_000, overflow))
    with pytest.raises(UploadRefused, match="'it' drops or refuses messages"):
        commit(connection, 1, range(10))
    assert got == []


def test_a_table_is_refused_where_rows_or_messages_are_meant(served: Served) -> None:
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"n": [1, 2]})
    connection = served.start()
    with connection.upload("it", job="other") as upload:
        with pytest.raises(TypeError, match=r"send_many\(\) expects .* got one Table: give it"):
            upload.send_many(table)
        with pytest.raises(CodecError, match=r"expects a pyarrow.RecordBatch, got a dict"):
            upload.send_batch({"n": [1, 2]})
        upload.send_batch(pa.record_batch({"n": [1]}))
    assert upload.staged is not None
    assert upload.staged.rows == 1
    with pytest.raises(TypeError, match=r"tell_many\(\) expects .* got one Table: give"):
        connection.ref("it").tell_many(table)
    assert got == []
