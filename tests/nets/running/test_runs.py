"""The methods of a run: send, tell, ask, trace, results, finish, cancel."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from typing import Any

import pytest

from callboard import ActorSystem, AskTimeout, ConfigError, DeadLetter
from callboard.nets import BoxError, NetEnded, NetRun, NetTimeout, RecordError, box, star, sync
from callboard.nets import filter as filtering
from tests.nets.running.gate import TIMEOUT, Gate, rows, send_all, values_of, within

double = box(lambda x: 2 * x, "(x) -> (y)", name="double")
count_down = filtering("{<n>} -> {<n=n-1>}")


@box("(x) -> (y)")
def positive(x: int) -> int:
    if x < 0:
        raise ValueError(f"{x} is negative")
    return x


def test_finish_returns_the_outputs_that_were_not_taken(system: ActorSystem) -> None:
    run = system.run(double)
    run.send(rows(range(1000)), timeout=TIMEOUT)
    assert run.finish(TIMEOUT) == rows(range(0, 2000, 2), "y")


@pytest.mark.parametrize(
    "option",
    ["threading", "policy", "batch_size", "time_slice", "markers", "hot_keys", "restore", "x"],
)
def test_an_option_that_nets_do_not_have_is_refused(system: ActorSystem, option: str) -> None:
    options: dict[str, Any] = {option: None}
    with pytest.raises(TypeError, match=rf"^run\(\) of a Box got an unexpected option '{option}'"):
        system.run(double, **options)


def test_a_misspelt_option_is_refused_with_the_nearest_one(system: ActorSystem) -> None:
    with pytest.raises(TypeError, match="unexpected option 'windows'; did you mean 'window'"):
        system.run(double, windows=3)  # type: ignore[call-arg]


def test_a_context_finishes_its_run(system: ActorSystem) -> None:
    with system.run(double) as run:
        run.send({"x": 1}, timeout=TIMEOUT)
    with pytest.raises(NetEnded, match="takes no more records"):
        run.send({"x": 1}, timeout=TIMEOUT)
    assert run.finish(TIMEOUT) == [{"y": 2}]


def test_an_error_in_a_context_cancels_its_run(system: ActorSystem) -> None:
    with pytest.raises(ZeroDivisionError), system.run(double) as run:
        raise ZeroDivisionError
    with pytest.raises(NetEnded, match="cancelled"):
        run.finish(TIMEOUT)


def test_the_error_of_a_context_comes_out_where_its_run_does_not_end_in_time(
    system: ActorSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    monkeypatch.setattr(NetRun.cancel, "__defaults__", (0.01,))

    def fail_at_work() -> None:
        with system.run(box(gate.wait, "(x) -> (y)")) as run:
            run.tell({"x": 1})
            gate.next()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_at_work()
    gate.open(1)


def test_a_feeder_of_results_fails_if_the_run_does_not_end_in_time(
    system: ActorSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    monkeypatch.setattr("callboard.nets.running.run.CANCEL", 0.01)
    run = system.run(box(gate.wait, "(x) -> (y)"))
    run.tell({"x": 1})
    gate.next()
    may_fail = threading.Event()
    before = set(threading.enumerate())
    results = run.results(1 / n for n in (0,) if may_fail.wait(TIMEOUT))
    (sending,) = (each for each in set(threading.enumerate()) - before if "_send" in each.name)
    may_fail.set()
    sending.join(TIMEOUT)  # pytest fails if it ends with an error
    gate.open(1)
    with pytest.raises(ZeroDivisionError):
        list(results)


def test_dataclasses_and_dicts_and_names_without_brackets_are_records(system: ActorSystem) -> None:
    @dataclass
    class Point:
        x: int
        n: int

    with system.run(filtering("{x, <n>} -> {x, <n=n+1>}")) as run:
        run.send([Point(1, 2), {"x": 3, "n": 4}, {"x": 5, "<n>": 6}], timeout=TIMEOUT)
        assert run.finish(TIMEOUT) == [{"x": 1, "<n>": 3}, {"x": 3, "<n>": 5}, {"x": 5, "<n>": 7}]


def test_records_may_come_from_an_iterator(system: ActorSystem) -> None:
    with system.run(double) as run:
        run.send(({"x": x} for x in range(2000)), timeout=TIMEOUT)
        assert values_of(run.finish(TIMEOUT), "y") == [2 * x for x in range(2000)]


def test_told_records_come_in_their_order(system: ActorSystem) -> None:
    run = system.run(double)
    run.tell({"x": 1})
    run.tell_many(rows(range(2, 1500)))
    run.send({"x": 1500}, timeout=TIMEOUT)
    assert values_of(run.finish(TIMEOUT), "y") == [2 * x for x in range(1, 1501)]


@pytest.mark.parametrize("row", [{"z": 1}, 7], ids=repr)
def test_a_told_record_that_the_net_does_not_take_is_not_lost_silently(
    system: ActorSystem, letters: list[DeadLetter], row: Any
) -> None:
    run = system.run(double)
    run.tell(row)
    try:
        outputs = run.finish(TIMEOUT)
    except RecordError:
        return  # the run failed by it
    assert outputs == []
    assert [letter.message for letter in letters] == [row]


def test_an_ask_has_only_the_outputs_of_its_record(system: ActorSystem) -> None:
    pair = filtering("{x} -> {y=x, <n=1>}; {y=x, <n=2>}")
    run = system.run(pair)
    run.send({"x": "sent"}, timeout=TIMEOUT)
    asked = [run.ask({"x": x}) for x in "abc"]
    for x, answer in zip("abc", asked, strict=True):
        assert answer.result(TIMEOUT) == [{"y": x, "<n>": 1}, {"y": x, "<n>": 2}]
    assert values_of(run.finish(TIMEOUT), "y") == ["sent", "sent"]


def test_an_ask_of_a_record_that_a_cell_keeps_has_nothing(system: ActorSystem) -> None:
    run = system.run(star(sync("{a}", "{b}"), "{a, b}"))
    assert run.ask({"a": 1}).result(TIMEOUT) == []
    assert run.ask({"b": 2}).result(TIMEOUT) == [{"a": 1, "b": 2}]
    assert run.finish(TIMEOUT) == []


def test_an_ask_without_an_answer_names_the_net_the_record_and_the_box(system: ActorSystem) -> None:
    gate = Gate()
    run = system.run(box(gate.wait_here, "(x) -> (y)", name="slow"))
    answer = run.ask({"x": 1})
    assert gate.next() == 1
    text = r"no answer to \{'x': 1\} from <NetRun of slow>, where calls run at .*slow \(1\),"
    with pytest.raises(AskTimeout, match=f"{text} after 0.01 s"):
        answer.result(0.01)
    late = run.ask({"x": 2}, timeout=0.01)
    with pytest.raises(NetTimeout, match=r"no answer to \{'x': 2\} from .* in 0.01 s"):
        late.result(TIMEOUT)
    gate.open(1, 2)
    assert answer.result(TIMEOUT) == [{"y": 1}]


def test_an_error_fails_the_ask_and_the_run_goes_on(system: ActorSystem) -> None:
    run = system.run(positive)
    bad, good = run.ask({"x": -1}), run.ask({"x": 1})
    with pytest.raises(BoxError, match="-1 is negative") as caught:
        bad.result(TIMEOUT)
    assert caught.value.record == {"x": -1}
    assert isinstance(caught.value.__cause__, ValueError)
    assert good.result(TIMEOUT) == [{"y": 1}]
    with pytest.raises(RecordError):
        run.ask({"z": 1}).result(TIMEOUT)
    assert run.finish(TIMEOUT) == []


def test_an_error_fails_the_run_and_all_waits(system: ActorSystem) -> None:
    run = system.run(positive)
    with pytest.raises(BoxError, match="-1 is negative"):
        send_all(run, rows([1, -1, 2]))
    for again in (run.finish, run.ask({"x": 1}).result):
        with pytest.raises(BoxError, match="-1 is negative"):
            again(TIMEOUT)
    with pytest.raises(BoxError, match="-1 is negative"):
        run.send({"x": 1}, timeout=TIMEOUT)


def test_outputs_from_before_a_failure_can_be_taken(system: ActorSystem) -> None:
    run = system.run(positive)
    with pytest.raises(BoxError):
        send_all(run, rows([1, 2, -1, 3]))
    taken: list[Any] = []
    with pytest.raises(BoxError):
        within(taken.extend, run.results()).result(TIMEOUT)
    assert taken == rows([1, 2], "y")


def test_results_come_one_by_one(system: ActorSystem) -> None:
    run = system.run(double)
    results = run.results()
    for x in range(5):
        run.send({"x": x}, timeout=TIMEOUT)
        assert within(next, results).result(TIMEOUT) == {"y": 2 * x}
    assert run.finish(TIMEOUT) == []
    assert list(results) == []


def test_results_and_finish_share_the_outputs(system: ActorSystem) -> None:
    run = system.run(double)
    taken = within(lambda: list(run.results()))
    run.send(rows(range(3000)), timeout=TIMEOUT)
    rest = run.finish(TIMEOUT)
    outputs = values_of([*taken.result(TIMEOUT), *rest], "y")
    assert outputs == [2 * x for x in range(3000)]


def test_results_send_records_themselves(system: ActorSystem) -> None:
    run = system.run(double)
    taken = within(lambda: list(run.results(rows(range(3000)))))
    assert values_of(taken.result(TIMEOUT), "y") == [2 * x for x in range(3000)]
    assert run.finish(TIMEOUT) == []


def test_results_that_send_raise_the_exception_of_their_records(system: ActorSystem) -> None:
    def broken() -> Any:
        yield {"x": 1}
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        within(list, system.run(double).results(broken())).result(TIMEOUT)


def test_results_for_async_code(system: ActorSystem) -> None:
    run = system.run(double)
    run.send(rows(range(10)), timeout=TIMEOUT)

    async def ten() -> list[Any]:
        taken: list[Any] = []
        async for record in run.results():
            taken.append(record)
            if len(taken) == 10:
                break
        return taken

    assert asyncio.run(asyncio.wait_for(ten(), TIMEOUT)) == rows(range(0, 20, 2), "y")
    assert run.finish(TIMEOUT) == []


def test_a_taker_that_is_cancelled_before_its_thread_begins_leaves_no_thread(
    system: ActorSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = threading.Event()
    threads: list[threading.Thread] = []

    async def cancelled(call: Any, *arguments: Any) -> None:
        thread = threading.Thread(target=lambda: begin.wait(TIMEOUT) and call(*arguments))
        threads.append(thread)
        thread.start()
        raise asyncio.CancelledError

    monkeypatch.setattr("callboard.nets.running.run.in_thread", cancelled)
    run = system.run(double)
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(anext(run.results()))
    system.drain(TIMEOUT)
    begin.set()
    threads[0].join(TIMEOUT)
    assert not threads[0].is_alive()
    run.send(rows(range(3)), timeout=TIMEOUT)
    assert run.finish(TIMEOUT) == rows(range(0, 6, 2), "y")


def test_results_in_a_task_of_trio(system: ActorSystem) -> None:
    trio = pytest.importorskip("trio")

    async def main() -> list[Any]:
        with trio.fail_after(TIMEOUT):
            run = system.run(double)
            results = run.results()
            with trio.move_on_after(0.01) as scope:
                await anext(results)
            assert scope.cancelled_caught
            run.tell_many(rows(range(10)))
            taken = [await anext(results) for _ in range(10)]
            assert await run.afinish() == []
            with pytest.raises(StopAsyncIteration):
                await anext(results)
            with_rows = [record async for record in system.run(double).results(rows(range(10)))]
            assert with_rows == taken
            return taken

    assert trio.run(main) == rows(range(0, 20, 2), "y")


def test_a_record_that_fits_no_box_leaves_nothing_to_wait_for(system: ActorSystem) -> None:
    async def never(y: int) -> None: ...

    run = system.run(box(lambda x: {"z": x}, "(x) -> ...", name="wrong") >> box(never))
    with pytest.raises(RecordError):
        run.ask({"x": 1}).result(TIMEOUT)
    assert run.finish(TIMEOUT) == []


@pytest.mark.parametrize("end", ["finish", "cancel"])
def test_a_run_takes_nothing_after_its_end(system: ActorSystem, end: str) -> None:
    run = system.run(double)
    run.send({"x": 1}, timeout=TIMEOUT)
    getattr(run, end)(TIMEOUT)
    for refused in (run.ask({"x": 1}).result, lambda timeout: run.send({"x": 1}, timeout=timeout)):
        with pytest.raises(NetEnded) as caught:
            refused(TIMEOUT)
    assert getattr(caught.value, "sent", None) == 0
    assert getattr(caught.value, "unsent", None) == [{"x": 1}]
    with pytest.raises(NetEnded):
        run.trace({"x": 1}, TIMEOUT)
    run.cancel(TIMEOUT)
    assert run.statistics().sent == 1


@pytest.mark.parametrize("end", ["finish", "cancel"])
def test_a_record_told_after_the_end_is_a_dead_letter(
    system: ActorSystem, letters: list[DeadLetter], end: str
) -> None:
    run = system.run(double)
    getattr(run, end)(TIMEOUT)
    run.tell({"x": 1})
    run.tell_many(rows([2, 3]))
    run.statistics()  # comes after them
    assert [(letter.message, letter.reason) for letter in letters] == [
        (row, "stopped") for row in rows([1, 2, 3])
    ]


def test_finish_waits_for_boxes_elsewhere_and_may_be_called_again(system: ActorSystem) -> None:
    gate = Gate()
    run = system.run(box(gate.wait_here, "(x) -> (y)"))
    run.send({"x": 1}, timeout=TIMEOUT)
    assert gate.next() == 1
    with pytest.raises(NetTimeout):
        run.finish(0.01)
    waits = within(run.finish, TIMEOUT)
    gate.open(1)
    assert waits.result(TIMEOUT) == [{"y": 1}]


def test_cancel_ends_all_waits(system: ActorSystem) -> None:
    gate = Gate()
    run = system.run(box(gate.wait_here, "(x) -> (y)"), window=1)
    sends = within(lambda: run.send(rows(range(3)), timeout=TIMEOUT))
    assert gate.next() == 0
    asked = run.ask({"x": 9})
    takes = within(next, run.results())
    finishes = within(run.finish, TIMEOUT)
    run.cancel(TIMEOUT)
    for each in (sends, asked, takes, finishes):
        with pytest.raises(NetEnded):
            each.result(TIMEOUT)


def test_several_runs_of_one_net_know_nothing_of_each_other(system: ActorSystem) -> None:
    net = star(sync("{a}", "{b}"), "{a, b}") >> box(lambda a, b: a + b, "(a, b) -> (y)")
    runs = [system.run(net) for _ in range(5)]
    for number, run in enumerate(runs):
        run.send(rows([number, 10], "a"), timeout=TIMEOUT)
    for run in reversed(runs):
        run.send(rows([100, 200], "b"), timeout=TIMEOUT)
    for number, run in enumerate(runs):
        assert sorted(values_of(run.finish(TIMEOUT), "y")) == [100 + number, 210]


def test_a_system_that_stops_ends_its_runs() -> None:
    gate = Gate()
    system = ActorSystem()
    run = system.run(box(gate.wait_here, "(x) -> (y)"))
    asked = run.ask({"x": 1})
    assert gate.next() == 1
    takes = within(next, run.results())
    finishes = within(run.finish, TIMEOUT)
    run.statistics()
    system.stop()
    for each in (asked, takes, finishes):
        with pytest.raises(NetEnded):
            each.result(TIMEOUT)
    for refused in (lambda: run.send({"x": 1}), run.statistics, run.finish):
        with pytest.raises(NetEnded):
            within(refused).result(TIMEOUT)
    run.tell({"x": 1})
    run.cancel()


def test_options_that_make_no_sense_are_refused(system: ActorSystem) -> None:
    with pytest.raises(ConfigError):
        system.run(double, window=0)
    run = system.run(double)
    with pytest.raises(ConfigError):
        run.results(limit=0)
    with pytest.raises(ConfigError):
        run.finish(-1)
    run.cancel()
    assert isinstance(run, NetRun)
    assert "double" in repr(run)
