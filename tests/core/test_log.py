"""What the records of the log say of themselves."""

import logging

import pytest

from callboard.core.log import log


@pytest.mark.parametrize("method", ["info", "error"])
def test_the_place_of_a_record_is_where_it_was_logged(
    caplog: pytest.LogCaptureFixture, method: str
) -> None:
    with caplog.at_level(logging.INFO, "callboard"):
        getattr(log, method)("something happened", times=2)
    [record] = caplog.records
    assert record.getMessage() == "something happened times=2"
    assert (record.pathname, record.funcName) == (
        __file__,
        "test_the_place_of_a_record_is_where_it_was_logged",
    )
