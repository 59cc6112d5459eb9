"""Mailboxes in the processes of a pool that drop or refuse messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from callboard import ActorSystem, BoundedMailbox
from tests.pools.conftest import LIMIT, letters
from tests.pools.workers import Work, noted


def test_a_refusal_in_a_process_is_one_dead_letter(system: ActorSystem, tmp_path: Path) -> None:
    found = letters(system)
    pool = system.pool(Work, str(tmp_path), processes=1, mailbox=BoundedMailbox(1, "fail"))
    pool.tell_many(range(50))
    system.drain(LIMIT)
    refused = [letter.message for letter in found]
    (handled,) = noted(tmp_path)
    assert refused
    assert {letter.reason for letter in found} == {"refused"}
    assert handled + refused == [*range(50)]


@pytest.mark.parametrize("overflow", ["fail", "drop_newest", "drop_oldest"])
def test_a_drain_waits_for_what_a_mailbox_that_loses_messages_has_taken(
    system: ActorSystem, tmp_path: Path, overflow: str
) -> None:
    pool = system.pool(Work, str(tmp_path), processes=1, mailbox=BoundedMailbox(3, overflow))
    pool.tell_many([("sleep", 0.2), 1, 2])
    system.drain(LIMIT)
    assert noted(tmp_path) == [[1, 2]]
