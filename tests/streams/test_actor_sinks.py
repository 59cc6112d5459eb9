"""Actors as sinks: each row is told, or reported, and never both."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from callboard import Actor, ActorSystem, BoundedMailbox
from callboard.messages import DeadLetter
from callboard.streams import Graph, RowCounts, StreamError, Watermark, entry
from callboard.testing import ManualSystem

ROWS = list(range(416))


class Keeper(Actor[Any]):
    def __init__(self, seen: list[Any]) -> None:
        self.seen = seen

    def receive(self, message: Any) -> None:
        self.seen.append(message)


class Slow(Actor[Any]):
    """Is in its first message until it may go on."""

    def __init__(self, seen: list[Any], entered: threading.Event, go: threading.Event) -> None:
        self.seen, self.entered, self.go = seen, entered, go

    def receive(self, message: Any) -> None:
        self.entered.set()
        assert self.go.wait(60)
        self.seen.append(message)


@pytest.mark.parametrize("batch_size", [1, 100, 1000])
def test_the_error_of_a_full_mailbox_names_the_first_row_that_was_not_told(batch_size: int) -> None:
    seen: list[int] = []
    with ManualSystem() as system:
        ref = system.spawn(Keeper, seen, mailbox=BoundedMailbox(16, overflow="fail"))
        with pytest.raises(StreamError, match="operator 'tell' failed at input 16, 16") as caught:
            entry("x").to(ref).run_sequentially({"x": ROWS}, batch_size=batch_size)
        assert type(caught.value.__cause__).__name__ == "MailboxFull"
        system.run_until_idle()
    assert seen == ROWS[:16]


@pytest.mark.parametrize("batch_size", [1, 100, 1000])
def test_rows_refused_by_a_full_mailbox_are_skipped(batch_size: int) -> None:
    seen: list[int] = []
    counts = RowCounts(kept=1000)
    with ManualSystem() as system:
        ref = system.spawn(Keeper, seen, mailbox=BoundedMailbox(16, overflow="fail"))
        graph = entry("x").to(ref, errors="skip")
        graph.run_sequentially({"x": ROWS}, batch_size=batch_size, row_counts=counts)
        system.run_until_idle()
    assert seen == ROWS[:16]
    assert [failure.row for failure in counts.failures] == ROWS[16:]
    assert [failure.serial for failure in counts.failures] == ROWS[16:]


def test_watermarks_are_no_rows_of_an_actor_that_is_full() -> None:
    seen: list[int] = []
    counts = RowCounts()
    with ManualSystem() as system:
        ref = system.spawn(Keeper, seen, mailbox=BoundedMailbox(1, overflow="fail"))
        rows = [Watermark(0), 1, Watermark(1), 2, Watermark(2), 3]
        entry("x").to(ref, errors="skip").run_sequentially({"x": rows}, row_counts=counts)
        system.run_until_idle()
    assert seen == [1]
    assert [(failure.serial, failure.row) for failure in counts.failures] == [(3, 2), (5, 3)]


@pytest.mark.parametrize("overflow", ["fail", "drop_newest", "drop_oldest", "block", "help"])
def test_with_any_overflow_policy_each_row_is_told_or_reported_once(overflow: str) -> None:
    seen: list[int] = []
    letters: list[DeadLetter] = []
    entered, go = threading.Event(), threading.Event()
    with ActorSystem(workers=2) as system:
        system.dead_letters.subscribe(letters.append)
        mailbox = BoundedMailbox(16, overflow=overflow, timeout=0.001)
        ref = system.spawn(Slow, seen, entered, go, mailbox=mailbox, dedicated=True)
        ref.tell(-1)
        assert entered.wait(60)
        run = system.run(entry("x").to(ref, errors="skip"), batch_size=50)
        run.send("x", ROWS[:100])
        run.finish(timeout=60)
        skipped = run.statistics().skipped
        go.set()
    messages = [getattr(letter.message, "row", letter.message) for letter in letters]
    assert sorted(seen[1:] + messages) == ROWS[:100]
    assert skipped == (0 if overflow.startswith("drop") else 100 - len(seen[1:]))


def test_a_throttling_mailbox_takes_all_rows() -> None:
    seen: list[int] = []
    with ActorSystem(workers=2) as system:
        mailbox = BoundedMailbox(16, overflow="throttle", timeout=0.0001)
        ref = system.spawn(Keeper, seen, mailbox=mailbox)
        run = system.run(entry("x").to(ref))
        run.send("x", ROWS)
        run.finish(timeout=60)
    assert seen == ROWS


def test_only_the_full_one_of_two_sinks_reports() -> None:
    full: list[int] = []
    other: list[int] = []
    counts = RowCounts(kept=1000)
    with ManualSystem() as system:
        rows = entry("x")
        bounded = system.spawn(Keeper, full, mailbox=BoundedMailbox(16, overflow="fail"))
        graph = Graph(
            rows.to(bounded, errors="skip", name="bounded"), rows.to(system.spawn(Keeper, other))
        )
        graph.run_sequentially({"x": ROWS}, row_counts=counts)
        system.run_until_idle()
    assert (full, other) == (ROWS[:16], ROWS)
    assert counts.skips == {"bounded": 400}


def test_rows_for_a_stopped_actor_are_dead_letters_and_no_failures() -> None:
    letters: list[DeadLetter] = []
    counts = RowCounts()
    with ManualSystem() as system:
        ref = system.spawn(Keeper, [])
        ref.stop()
        system.run_until_idle()
        system.dead_letters.subscribe(letters.append)
        entry("x").to(ref, errors="skip").run_sequentially({"x": ROWS}, row_counts=counts)
        system.run_until_idle()
    assert [letter.message for letter in letters] == ROWS
    assert not counts.skips
