"""Texts of failures that repeat a large message are cut."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from callboard import Actor, ActorSystem, DeadLetter
from callboard.failures import FailureReport

LARGE = "x" * 1_000_000


class Repeating(Actor[Any]):
    def receive(self, message: Any) -> None:
        try:
            raise ValueError(message)
        except ValueError as error:
            error.add_note(message)
            raise KeyError(message) from error


def test_a_failures_report_is_short_however_long_its_texts_are() -> None:
    try:
        Repeating.receive(None, LARGE)  # type: ignore[arg-type]
    except KeyError as error:
        report = FailureReport.of(error)
    assert len(report.text) < 11_000
    assert len(report.summary) < 11_000
    assert len(report.traceback) < 50_000
    assert "KeyError" in report.traceback
    assert "ValueError" in report.traceback
    assert len(pickle.dumps([report.text, report.traceback])) < 100_000


def test_texts_of_a_failure_are_short_in_log_and_letters(caplog: pytest.LogCaptureFixture) -> None:
    found: list[DeadLetter] = []
    with ActorSystem(workers=1) as system:
        system.dead_letters.subscribe(found.append)
        system.spawn(Repeating, supervision="resume").tell(LARGE)
        system.drain(60)
        (failure,) = system.dead_letters.failures
    assert found[0].message is LARGE
    assert len(repr(found[0])) < 5_000
    assert len(failure[1].traceback) < 50_000
    assert max(len(record.getMessage()) for record in caplog.records) < 30_000
