"""Records of the log have the right place, and safe and short texts."""

import logging
from typing import Any

import pytest

from callboard.core.log import log


@pytest.mark.parametrize("method", ["info", "error"])
def test_a_record_has_the_place_of_its_call(caplog: pytest.LogCaptureFixture, method: str) -> None:
    with caplog.at_level(logging.INFO, "callboard"):
        getattr(log, method)("something happened", times=2)
    [record] = caplog.records
    assert record.getMessage() == "something happened times=2"
    assert (record.pathname, record.funcName) == (
        __file__,
        "test_a_record_has_the_place_of_its_call",
    )


@pytest.mark.parametrize(
    "text", ["x\nERROR forged", "\x1b[2J", "\r", "a\u2028b", "\ud800", "\x85", "\u202e"]
)
def test_log_lines_cannot_be_forged_by_texts(text: str, caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise ValueError(text)
    except ValueError as error:
        log.error("it failed", client=text, error=error, exc_info=error)
    first, *rest = caplog.records[0].getMessage().split("\n")
    assert first.startswith("it failed client=")
    assert all(line.isprintable() and line.startswith("  ") for line in rest)
    assert first.isprintable()
    assert rest[0] == "  Traceback (most recent call last):"


def test_long_texts_in_the_log_are_cut(caplog: pytest.LogCaptureFixture) -> None:
    values: list[Any] = ["x" * 1_000_000, [b"x"] * 1_000_000, {"a": "x" * 1_000_000}]
    for value in values:
        try:
            raise ValueError(value)
        except ValueError as error:
            log.error("it failed", given=value, error=error, exc_info=error)
    assert max(len(record.getMessage()) for record in caplog.records) < 30_000
