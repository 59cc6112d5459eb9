"""Consumers and senders that leave early lose no record and no output, and keep their order."""

import asyncio
import gc
import random
import threading
import weakref
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any

import pytest

from callboard import ActorSystem
from callboard.nets import (
    BoxError,
    NetEnded,
    NetOperator,
    NetTimeout,
    RecordError,
    box,
    join,
    ordered,
    split,
    sync,
)
from callboard.testing import ManualSystem, replay
from tests.nets.running.gate import Gate, within

TIMEOUT = 60.0
ROWS = [{"n": n} for n in range(10)]

double = box(lambda n: 2 * n, "(n) -> (m)", name="double")


@pytest.fixture
def system() -> Iterator[ActorSystem]:
    with ActorSystem(workers=2) as system:
        yield system


def test_outputs_left_by_a_loop_are_for_finish(system: ActorSystem) -> None:
    run = system.run(double)
    run.send(ROWS)
    for record in run.results():
        assert record == {"m": 0}
        break
    assert list(islice(run.results(), 3)) == [{"m": 2}, {"m": 4}, {"m": 6}]
    assert run.finish(TIMEOUT) == [{"m": 2 * n} for n in range(4, 10)]


def test_a_closed_iterator_gives_back_fetched_outputs(system: ActorSystem) -> None:
    run = system.run(double)
    run.send(ROWS)
    results = run.results()
    assert next(results) == {"m": 0}
    results.close()
    assert next(run.results()) == {"m": 2}
    assert len(run.finish(TIMEOUT)) == 8


def test_a_cancelled_consumer_takes_nothing(system: ActorSystem) -> None:
    run = system.run(double)

    async def consume() -> list[Any]:
        results = run.results()
        waiting = asyncio.ensure_future(anext(results))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(waiting, 0.01)
        await run.asend(ROWS)
        return [await anext(results)]

    assert asyncio.run(consume()) == [{"m": 0}]
    assert len(run.finish(TIMEOUT)) == 9


def test_a_send_that_timed_out_leaves_nothing_behind() -> None:
    gate = Gate()
    with ActorSystem(workers=1, drain_timeout=TIMEOUT) as system:
        run = system.run(box(gate.wait, "(n) -> (m)", name="gated", threads=True), window=1)
        with pytest.raises(NetTimeout, match="1 record went into") as caught:
            run.send(ROWS[:3], timeout=0.05)
        assert (caught.value.sent, caught.value.unsent) == (1, ROWS[1:3])  # type: ignore[attr-defined]
        gate.open(0)
        assert len(run.finish(TIMEOUT)) == 1


@pytest.mark.parametrize("threads", [False, True])
def test_an_error_that_comes_out_keeps_its_place(system: ActorSystem, threads: bool) -> None:
    last = threading.Event()

    def work(n: int) -> dict[str, int]:
        if n == 9:
            last.set()
        if n == 1:
            assert last.wait(TIMEOUT)
            raise ValueError(n)
        return {"m": n}

    async def await_work(n: int) -> dict[str, int]:
        return await asyncio.to_thread(work, n)

    function = work if threads else await_work
    options: dict[str, Any] = {"threads": True, "concurrency": 10} if threads else {}
    net = box(function, "(n) -> (m)", name="work", errors="variant", **options)
    run = system.run(ordered(net))
    run.send(ROWS)
    found = run.finish(TIMEOUT)
    assert [record.get("m", "error") for record in found] == [0, "error", *range(2, 10)]


def test_outputs_that_were_not_taken_become_dead_letters() -> None:
    letters: list[Any] = []
    with ActorSystem(workers=1) as system:
        system.dead_letters.subscribe(letters.append)
        run = system.run(double)
        run.send(ROWS[:3])
        run.cancel()
        with pytest.raises(NetEnded):
            run.finish(TIMEOUT)
    found = [(letter.reason, letter.message) for letter in letters]
    assert found == [("uncollected", {"m": 2 * n}) for n in range(3)]


def test_an_async_object_gets_one_call_at_a_time(system: ActorSystem) -> None:
    gate = Gate()

    class Waits:
        async def __call__(self, n: int) -> int:
            result: int = await gate.wait_here(n)
            return result

    async def echo(other: int) -> int:
        return other

    net = box(Waits, "(n) -> (m)") | box(echo, "(other) -> (m)", name="echo")
    run = system.run(net)
    run.send(ROWS[:2])
    assert run.ask({"other": 7}).result(TIMEOUT) == [{"m": 7}]  # begun behind the others
    assert (gate.next(), gate.now) == (0, 1)
    gate.open(0, 1)
    assert run.finish(TIMEOUT) == [{"m": 0}, {"m": 1}]
    assert gate.most == 1


async def plus(amount: int, n: int) -> int:
    return n + amount


def test_partial_coroutines_are_awaited_and_returned_ones_refused(system: ActorSystem) -> None:
    run = system.run(box(partial(plus, 1), "(n) -> (m)", name="plus"))
    run.send(ROWS[:1])
    assert run.finish(TIMEOUT) == [{"m": 1}]
    run = system.run(box(lambda n: plus(1, n), "(n) -> (m)", name="late"))
    with pytest.raises(RecordError, match="/late: expected an output, got a coroutine"):
        run.send(ROWS[:1])


def test_errors_show_no_more_than_the_beginning_of_a_record(system: ActorSystem) -> None:
    run = system.run(box(lambda n: 1 / 0, "(n) -> (m)", name="bad"))
    with pytest.raises(BoxError) as caught:
        run.send([{"n": "x" * 100_000}])
    assert len(str(caught.value)) < 1_000


def test_a_run_whose_send_raised_is_freed_with_its_actor(system: ActorSystem) -> None:
    class Held:
        """Among the caller's locals, which the error's traceback has."""

    held: list[weakref.ref[Held]] = []

    def fail() -> None:
        local = Held()
        held.append(weakref.ref(local))
        with system.run(box(lambda n: n // 0, "(n) -> (m)")) as run:
            run.send(ROWS)

    with suppress(BoxError):
        fail()
    gc.collect()
    system.drain()  # the run's actor has been told
    gc.collect()
    assert held[0]() is None
    assert system.actors == []


def test_an_operator_whose_net_has_failed_takes_no_more_rows() -> None:
    """A record that failed may have left others in the net, which later rows would bring out."""
    operator = NetOperator(box(plus_one, "(n) -> (m)", name="plus_one"))
    with pytest.raises(RecordError, match="expected a dict"):
        operator.receive(5)
    assert operator.receive({"n": 1}) == [{"m": 2}]
    with pytest.raises(BoxError):
        operator.receive({"n": "one"})
    with pytest.raises(NetEnded, match="failed at an earlier row: /plus_one failed"):
        operator.receive({"n": 1})


async def plus_one(n: int) -> int:
    return n + 1


def test_statistics_count_the_records_before_a_failure(system: ActorSystem) -> None:
    run = system.run(box(lambda n: 1 // (n - 3), "(n) -> (m)", name="inverse"))
    with pytest.raises(BoxError):
        run.send(ROWS)
    assert run.statistics().sent == 4
    run = system.run(box(plus_one, "(n) -> (m)", name="late", concurrency=1))
    run.send(ROWS)
    run.cancel()
    assert run.statistics().elsewhere == 0


@pytest.mark.parametrize("key", ["id", "<id>"])
def test_a_join_by_a_name_takes_the_field_or_the_tag(system: ActorSystem, key: str) -> None:
    page = box(lambda a: a, "(a) -> (page)", name="page")
    price = box(lambda b: b, "(b) -> (price)", name="price")
    run = system.run(split(page | price, key) >> join(on="id", of=("page", "price")))
    run.send([{key: n, side: n} for side in "ab" for n in range(3)])
    assert run.finish(TIMEOUT) == [{key: n, "page": n, "price": n} for n in range(3)]


def test_a_closed_consumer_has_no_limit(system: ActorSystem) -> None:
    run = system.run(double)
    for number, results in enumerate([run.results(limit=2), run.results(limit=3)]):
        run.send(ROWS[:1], timeout=TIMEOUT)
        assert next(results) == {"m": 0}, number
        results.close()
    run.send(ROWS, timeout=TIMEOUT)
    assert len(run.finish(TIMEOUT)) == 10


def test_a_consumer_that_stays_limits_others_that_have_none(manual: ManualSystem) -> None:
    run = manual.run(double)
    small, _large = run.results(limit=2), run.results(limit=100)
    run.tell_many(ROWS)
    manual.run_until_idle()
    assert run.statistics().sent == 2
    small.close()
    manual.run_until_idle()
    assert run.statistics().sent == 10
    run.finish()


def test_outputs_of_a_finish_that_timed_out_are_the_next_ones() -> None:
    gate = Gate()
    letters: list[Any] = []
    with ActorSystem(workers=1) as system:
        system.dead_letters.subscribe(letters.append)
        run = system.run(box(gate.wait, "(n) -> (m)", name="gated", threads=True))
        run.send(ROWS[:1])
        with pytest.raises(NetTimeout, match=r"finish.* did not end in time"):
            run.finish(0.0)
        gate.open(0)
    assert [(letter.reason, letter.message) for letter in letters] == [("uncollected", {"m": 0})]


def test_a_system_is_idle_during_a_wait_for_outputs() -> None:
    gate = Gate()
    letters: list[Any] = []
    with ActorSystem(workers=1, drain_timeout=TIMEOUT) as system:
        system.dead_letters.subscribe(letters.append)
        run = system.run(box(gate.wait_here, "(n) -> (m)", name="gated"))
        results = run.results()
        run.tell_many(ROWS[:2])
        assert gate.several(2) == {0, 1}
        gate.open(0, 1)
        assert within(lambda: [next(results), next(results)]).result(TIMEOUT)
        waits = within(next, results)
        system.drain(TIMEOUT)
        assert not waits.done()
    with pytest.raises(NetEnded):
        waits.result(TIMEOUT)
    assert not letters


def test_each_record_told_after_the_end_is_a_dead_letter() -> None:
    letters: list[Any] = []
    system = ManualSystem()
    system.dead_letters.subscribe(letters.append)
    run = system.run(double)
    results = run.results()
    run.tell_many(ROWS[:3])
    system.run_until_idle()
    assert next(results) == {"m": 0}
    run.tell_many(ROWS[3:5])  # which nobody looks at before the stop
    results.close()
    system.stop()
    run.tell(ROWS[5])
    assert [(letter.reason, letter.message) for letter in letters] == [
        *[("stopped", {"n": n}) for n in (3, 4)],
        *[("uncollected", {"m": 2 * n}) for n in (1, 2)],
        ("stopped", {"n": 5}),
    ]
    with pytest.raises(NetEnded):
        next(results)


@replay(30)
def test_statistics_add_up(seed: int) -> None:
    """Each record of this net is an output, skipped, unpaired, or swallowed."""
    chance = random.Random(seed)
    swallowed: list[int] = []

    def work(x: int) -> int | None:
        if x % 5 == 1:
            raise ValueError(x)
        if x % 5 == 2:
            swallowed.append(x)
            return None
        return x

    cell = sync("{y}", "{never}")
    net = box(work, "(x) -> (y)", errors="skip", threads=True) >> split(cell, "<k>")
    sent = 0
    with ManualSystem(seed) as system:
        letters: list[Any] = []
        system.dead_letters.subscribe(letters.append)
        run = system.run(net, window=chance.choice([1, 3, 256]))
        results = run.results()
        for _ in range(chance.randrange(1, 12)):
            rows = [{"x": sent + number, "<k>": chance.randrange(3)} for number in range(3)]
            sent += 3
            match chance.randrange(4):
                case 0:
                    run.send(rows)
                case 1:
                    run.tell_many(rows)
                case 2:
                    for row in rows:
                        run.ask(row).result()
                case 3:
                    for row in rows:
                        run.trace(row)
            system.run_until_idle()
            if chance.random() < 0.3 and run.statistics().put_out < sent:
                results.close()
        run.finish()
        seen = run.statistics()
    unpaired = sum(letter.reason == "unpaired" for letter in letters)
    assert seen.sent == sent
    assert seen.sent == seen.put_out + seen.skipped + unpaired + len(swallowed)


async def test_a_cancelled_send_has_sent_and_unsent_records_and_leaves_nothing_behind() -> None:
    gate = Gate()
    async with ActorSystem(workers=1, drain_timeout=TIMEOUT) as system:
        run = system.run(box(gate.wait, "(n) -> (m)", name="gated", threads=True), window=1)
        source = iter(ROWS)
        cancelled: list[Any] = []

        async def send() -> None:
            try:
                await run.asend(source)
            except asyncio.CancelledError as error:
                cancelled.append(error)
                raise

        sending = asyncio.create_task(send())
        await asyncio.sleep(0)  # it awaits
        while next(iter(run.statistics().calls.values()), 0) < 1:
            await asyncio.sleep(0)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        assert cancelled[0].sent == 1
        assert [*cancelled[0].unsent, *source] == ROWS[1:]
        gate.open(0)
        assert len(await run.afinish(TIMEOUT)) == 1
