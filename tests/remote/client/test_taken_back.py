"""Messages no longer wanted are not waited for, and those not yet sent are taken back."""

import asyncio
from typing import Any

import pytest

from callboard import AskCancelled, AskTimeout, CallboardError
from callboard.remote import Connection, ServerLimits, aconnect, connect
from tests.remote.conftest import DEADLINE, Gate, Start, eventually


def test_a_flush_waits_for_no_ask_that_was_cancelled_or_timed_out(connection: Connection) -> None:
    gate = connection.ref("gate")
    asked = gate.ask("wait")
    late = gate.ask("wait", timeout=0.01)
    flushed = connection.aflush()
    with pytest.raises(AskTimeout):
        late.result(DEADLINE)
    assert not flushed.done()
    asked.cancel()
    assert flushed.exception(DEADLINE / 2) is None  # before the gate gives up
    connection._own_session._io.call(lambda: connection._own_session._hang_up("for the test"))
    connection.flush(DEADLINE)


@pytest.mark.parametrize("timeout", [None, 0.01])
def test_an_ask_cancelled_before_it_left_is_taken_back(start: Start, timeout: float | None) -> None:
    server = start()
    with connect(str(server.address), timeout=DEADLINE) as connection:
        server.stop()
        eventually(lambda: connection._own_session.server is None, "the loss is noticed")
        notes = connection.ref("notes")
        answer = notes.ask(1, timeout)
        flushed = connection.aflush()
        if timeout is None:
            assert not flushed.done()
            answer.cancel()
        flushed.result(DEADLINE)
        assert isinstance(answer.exception(DEADLINE), AskTimeout if timeout else AskCancelled)
        start()
        assert notes.ask("all").result(DEADLINE) == []


async def test_a_atell_that_is_cancelled_before_it_has_left_is_taken_back(start: Start) -> None:
    server = start(limits=ServerLimits(messages=1))
    async with await aconnect(str(server.address), timeout=DEADLINE) as connection:
        gate = connection.ref("gate")
        await gate.atell(1)
        cancelled = gate.atell(2)
        assert cancelled.cancel()
        assert cancelled.cancelled()
        waits = gate.atell(3)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(waiting(waits), 0.01)
        with pytest.raises(CallboardError, match="was not sent"):
            waits.result()
        kept = gate.atell(4)
        Gate.opened.set()
        await kept
    assert Gate.seen == [1, 4]


async def waiting(future: Any) -> Any:
    return await future
