"""A run of a net in an event loop: waits are awaited, and blocking calls are refused."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from callboard import ActorSystem, WouldBlock
from callboard.nets import NetEnded, box

DEADLINE = 30.0


@box("(x) -> (y)")
def successor(x: int) -> Any:
    return {"y": x + 1}


def values(records: Any) -> list[int]:
    return sorted(record["y"] for record in records)


async def test_records_and_outputs_are_awaited() -> None:
    async with ActorSystem(workers=1) as system:
        async with system.run(successor) as run:
            await run.asend([{"x": x} for x in range(5)])
            outputs = await run.afinish()
        assert values(outputs) == [1, 2, 3, 4, 5]


async def test_a_trace_is_awaited() -> None:
    async with ActorSystem(workers=1) as system, system.run(successor) as run:
        trace = await run.atrace({"x": 1})
        assert values(trace.outputs) == [2]


def calls() -> dict[str, tuple[Callable[[Any], Any], str]]:
    return {
        "send": (lambda run: run.send([{"x": 1}]), r"await asend\(\), or tell_many\(\)"),
        "trace": (lambda run: run.trace({"x": 1}), r"await atrace\(\)"),
        "finish": (lambda run: run.finish(), r"await afinish\(\)"),
        "cancel": (lambda run: run.cancel(), r"await acancel\(\)"),
        "results": (lambda run: next(run.results()), "take them by `async for`"),
        "with": (lambda run: run.__enter__(), "use `async with`"),
    }


@pytest.mark.parametrize("name", list(calls()))
async def test_a_call_that_would_wait_is_refused_and_names_its_awaitable(name: str) -> None:
    call, advice = calls()[name]
    async with ActorSystem(workers=1) as system:
        run = system.run(successor)
        with pytest.raises(WouldBlock, match=f"would block the event loop: .*{advice}"):
            call(run)
        await run.acancel()


async def test_a_failed_block_cancels_the_run() -> None:
    async with ActorSystem(workers=1) as system:
        with pytest.raises(KeyError):
            async with system.run(successor) as run:
                raise KeyError
        assert not [each for each in threading.enumerate() if each.name == f"{system.name}-cancel"]
        with pytest.raises(NetEnded):
            await run.afinish()
