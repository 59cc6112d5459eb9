"""Predictions of a run's gain, and calls that cannot have one.

Costs differ so much that no noise of the machine changes an answer.
tests/native/test_delay_ledger.cpp has a clock that is counted.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest

from callboard import Actor, ActorSystem
from callboard.core.errors import ConfigError, WouldBlock
from callboard.observing import record_trace
from callboard.streams import Run, RunEnded, RunError, StreamError, WhatIf, entry
from callboard.streams.experiments.what_if import Period, WhatIfs, compared
from callboard.streams.running.build import OperatorPlace
from callboard.testing import ManualSystem

T = TypeVar("T")
PATIENCE = "callboard.streams.running.experiment._PATIENCE"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a run may have no round for some seconds."""
    monkeypatch.setattr(PATIENCE, 60.0)


def computing(loops: int) -> Callable[[int], int]:
    def compute(row: int) -> int:
        for _ in range(loops):
            pass
        return row

    return compute


def waiting(seconds: float) -> Callable[[int], int]:
    """Return a function that lets the interpreter go."""
    never = threading.Event()

    def wait(row: int) -> int:
        never.wait(seconds)
        return row

    return wait


@contextmanager
def fed(graph: Any, rows: int = 8, **options: Any) -> Iterator[Run[Any]]:
    """A run that gets batches as fast as it takes them, from a thread."""
    with ActorSystem(workers=2) as system:
        run = system.run(graph, batch_size=rows, window=8, **options)
        over = threading.Event()

        def send() -> None:
            try:
                while not over.is_set():
                    run.send("x", range(rows))
            except RunError:  # it was ended
                pass

        sender = threading.Thread(target=send)
        sender.start()
        try:
            yield run
        finally:
            over.set()
            run.cancel()
            sender.join()


def two(first: Callable[[int], int], second: Callable[[int], int]) -> Any:
    return entry("x").map(first, name="first").map(second, name="second").filter(bool).collect()


def answer_that(holds: Callable[[T], bool], ask: Callable[[], T]) -> T:
    """Ask until the answer is as it has to be, five times at most: other programs make noise."""
    answer = ask()
    for _ in range(4):
        if holds(answer):
            break
        answer = ask()
    assert holds(answer), answer
    return answer


def test_on_one_worker_the_operator_with_the_most_work_gains_most() -> None:
    def second_gains(answers: WhatIfs) -> bool:
        gains = {one.operator: one.gain for one in answers}
        is_most = answers[0].operator == "second"
        return is_most and gains["second"] > max(0.3, gains["first"])  # 9 in truth, and 0.0

    with fed(two(computing(20), computing(20_000))) as run:
        answers = answer_that(second_gains, lambda: run.what_if(faster=0.9, seconds=3.0))
    assert answers == tuple(sorted(answers, key=_by_gain))


def _by_gain(one: WhatIf) -> float:
    return -one.gain


def test_on_threads_the_operator_that_others_wait_for_gains() -> None:
    with fed(two(waiting(0.001), waiting(0.01)), rows=1, threading="dedicated") as run:
        answer_that(lambda quick: quick.gain < 0.5, lambda: run.what_if("first", 0.8, seconds=3.0))
        slow = answer_that(  # its gain is 4 in truth, and that of the other 0.0
            lambda slow: slow.gain > 0.5 and slow.is_sure,
            lambda: run.what_if("second", 0.8, seconds=3.0),
        )
    assert slow.predicted > 1.5 * slow.baseline > 0


def next_pair(last: tuple[int, int], row: int) -> tuple[int, int]:
    return row, last[1] + 1


def test_the_outputs_are_the_same_and_in_order_while_operators_seem_faster() -> None:
    numbered = entry("x").map(computing(10), name="map").scan((-1, -1), next_pair)
    graph = numbered.collect()
    with ActorSystem(workers=2) as system:
        run = system.run(graph, batch_size=8, window=8)
        answered = threading.Event()

        def ask() -> None:
            try:
                run.what_if("map", 0.5, seconds=0.5)
            finally:
                answered.set()

        asker = threading.Thread(target=ask)
        asker.start()
        sent = 0
        while not answered.is_set():
            run.send("x", range(sent, sent + 100))
            sent += 100
        asker.join()
        run.send("x", range(sent, sent + 100))
        assert run.finish(timeout=60) == [(n, n) for n in range(sent + 100)]


def test_a_sender_is_not_slowed_down_after_the_answer() -> None:
    with fed(two(computing(10), computing(10))) as run:
        run.what_if("first", 0.5, seconds=0.5)
        assert run._work.admit_round == run._work.flow.try_admit
        assert run._work.experiment.acquire(blocking=False)


def test_an_operator_that_is_not_there_is_refused_with_the_names_of_those_that_are() -> None:
    with fed(two(computing(1), computing(1))) as run:
        match = "one of the operators 'first', 'second', 'bool', 'collect', got 'third'"
        with pytest.raises(RunError, match=match):
            run.what_if("third")


@pytest.mark.parametrize("faster", [0, -0.1, 1.01, float("nan"), "0.2", True])
def test_a_wrong_part_is_refused(faster: Any) -> None:
    with (
        fed(two(computing(1), computing(1))) as run,
        pytest.raises(ConfigError, match="what_if\\(\\)'s faster must be a "),
    ):
        run.what_if("first", faster)


def test_a_run_that_has_ended_or_failed_says_so() -> None:
    with ActorSystem() as system:
        run = system.run(two(computing(1), computing(1)))
        run.finish(timeout=60)
        with pytest.raises(RunEnded, match="has ended, and what_if\\(\\) watches it at work"):
            run.what_if("first")
        failing = system.run(entry("x").map(lambda row: 1 // row, name="first").collect())
        failing.send("x", [0])
        with pytest.raises(StreamError):
            failing.finish(timeout=60)
        with pytest.raises(StreamError, match="'first' failed at input 0"):
            failing.what_if("first")


def test_a_run_that_is_cancelled_meanwhile_ends_the_experiment() -> None:
    with fed(two(computing(10), computing(10))) as run:
        timer = threading.Timer(0.2, run.cancel)
        timer.start()
        with pytest.raises(RunEnded):
            run.what_if("first", seconds=600)
        timer.join()


def test_a_run_that_gets_no_rows_has_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PATIENCE, 3.0)
    with (
        ActorSystem() as system,
        system.run(two(computing(1), computing(1))) as run,
        pytest.raises(RunError, match=r"needs 4 rounds in a period, and <Run running.* in 3 s"),
    ):
        run.what_if("first", seconds=0.2)


def test_another_experiment_at_the_same_time_is_refused() -> None:
    with (
        fed(two(computing(10), computing(10))) as run,
        run._work.experiment,
        pytest.raises(RunError, match=r"another what_if\(\) of <Run running"),
    ):
        run.what_if("first")


def test_an_operator_of_the_senders_thread_is_refused() -> None:
    with ActorSystem() as system, system.run(two(abs, abs), threading="manual") as run:
        assert run.what_if() == WhatIfs()
        with pytest.raises(RunError, match="sending thread runs 'first'"):
            run.what_if("first")


@pytest.mark.parametrize("operator", ["first", "second", None])
def test_a_run_with_operators_in_worker_processes_is_refused(operator: str | None) -> None:
    graph = entry("x").map(abs, name="first").here().map(abs, name="second").collect()
    said = "worker processes, which run 'first', do not pause"
    with ActorSystem(processes=1) as system:
        run = system.run(graph)
        with pytest.raises(RunError, match=said):
            run.what_if(operator)
        assert run.awhat_if("second").exception(30) is not None
        run.cancel()


def test_an_operator_that_moves_to_worker_processes_ends_the_experiment() -> None:
    class Moving:
        reason = ""
        looks = iter(["", "", *["worker processes"] * 99])

        @property
        def where(self) -> str:
            return next(self.looks)

    with fed(two(abs, abs)) as run:
        run._work.deployment.places[0] = OperatorPlace("dynamic", segment=Moving())
        with pytest.raises(RunError, match="which run 'first', do not pause"):
            run.what_if("second", seconds=60)


def test_a_manual_system_has_no_time_to_measure() -> None:
    with (
        ManualSystem() as system,
        system.run(two(abs, abs)) as run,
        pytest.raises(RunError, match="has a logical clock"),
    ):
        run.what_if("first")


def test_a_prediction_is_awaited() -> None:
    with fed(two(computing(100), computing(100))) as run:

        async def main() -> WhatIf:
            return await run.awhat_if("first", 0.5, seconds=0.5)

        assert asyncio.run(main()).operator == "first"


def test_an_event_loop_is_not_blocked() -> None:
    with fed(two(computing(1), computing(1))) as run:

        async def ask() -> None:
            run.what_if("first")

        with pytest.raises(WouldBlock, match=r"await awhat_if"):
            asyncio.run(ask())


class Asking(Actor[Any]):
    def receive(self, run: Run[Any]) -> Any:
        return run.what_if("first")


def test_an_actor_does_not_hold_up_its_worker() -> None:
    with (
        fed(two(computing(1), computing(1))) as run,
        ActorSystem() as system,
        pytest.raises(RunError, match="blocks its worker: it watches the run"),
    ):
        system.spawn(Asking).ask(run).result(60)


def test_traces_see_the_slices_of_a_run_under_experiment(tmp_path: Any) -> None:
    with ActorSystem(monitoring="times") as system:
        with record_trace(system, tmp_path / "run.perfetto-trace"):
            run = system.run(two(computing(100), computing(100)), batch_size=8, window=8)
            over = threading.Event()

            def send() -> None:
                while not over.is_set():
                    run.send("x", range(8))

            sender = threading.Thread(target=send)
            sender.start()
            try:
                run.what_if("first", seconds=0.5)
            finally:
                over.set()
                sender.join()
            run.finish(timeout=60)
        assert b"first" in (tmp_path / "run.perfetto-trace").read_bytes()


# --- the comparison ------------------------------------------------------------------------------


def test_each_period_is_compared_with_those_around_it() -> None:
    plain = [Period(1000, 1.0), Period(1000, 0.5), Period(1000, 1.0)]
    fast = [Period(1650, 1.0), Period(3000, 1.0)]
    answer = compared("parse", 0.2, plain, fast)
    assert answer.gains == pytest.approx((0.1, 1.0))
    assert answer.gain == pytest.approx(0.55)
    assert answer.baseline == 1000.0
    assert answer.predicted == pytest.approx(1550.0)


def test_the_uncertainty_spares_the_smallest_and_the_largest() -> None:
    plain = [Period(100, 1.0)] * 9
    fast = [Period(rows, 1.0) for rows in (10, 110, 111, 112, 112, 113, 116, 900)]
    answer = compared("parse", 0.2, plain, fast)
    assert answer.gain == pytest.approx(0.12)
    assert answer.uncertainty == pytest.approx(0.04)


def test_a_run_of_which_nothing_is_left_gains_without_bounds() -> None:
    plain = [Period(100, 1.0)] * 3
    answer = compared("parse", 1.0, plain, [Period(100, 0.0), Period(100, -0.1)])
    assert answer.gain == float("inf")
    assert answer.is_sure
    assert "nothing" in str(answer)


def test_an_answer_is_a_sentence_and_answers_are_a_table() -> None:
    sure = WhatIf("parse", 0.2, 10_000.0, 0.123, 0.02, (0.123,))
    other = WhatIf("write", 0.2, 10_000.0, 0.01, 0.02, (0.01,))
    assert str(sure) == (
        "If 'parse' took 20% less time, the run would do 11,230 rows/s instead of 10,000 "
        "(+12.3% ± 2.0%)."
    )
    assert str(other) == (
        "If 'write' took 20% less time, the run would do about the same 10,000 rows/s "
        "(+1.0% ± 2.0%)."
    )
    unknown = WhatIf("write", 0.2, 10_000.0, 0.998, 1.015, (0.998,))
    assert str(unknown) == (
        "If 'write' took 20% less time, it is not clear yet what the run would do instead of "
        "10,000 rows/s (+99.8% ± 101.5%): ask again with more `seconds`."
    )
    both = WhatIfs((sure, other))
    assert str(both).splitlines() == [
        "operator    gain          rows/s",
        "parse     +12.3%  ± 2.0%  11,230",
        "write      +1.0%  ± 2.0%  10,100",
    ]
    assert ">parse<" in both._repr_html_()
