"""The `repr()` of runs, timers, workers and dead letters: short, and without addresses."""

import functools
from typing import Any

import pytest

from callboard import Actor, ActorSystem
from callboard.streams import SessionWindow, SlidingWindow, TumblingWindow, Watermark, entry
from callboard.testing import ManualSystem


class Policy:
    """A callable without a name."""

    def __call__(self, row: int) -> int:
        return row

    def time(self, row: int) -> int:
        return row


@pytest.mark.parametrize(
    ("windows", "text"),
    [
        (TumblingWindow(10), "TumblingWindow(size=10)"),
        (TumblingWindow(10, by=Policy().time), "TumblingWindow(by=time, size=10)"),
        (
            TumblingWindow(10, by=Policy(), ordered=True),
            "TumblingWindow(by=Policy, ordered=True, size=10)",
        ),
        (SlidingWindow(10, 5, by=lambda row: row), "SlidingWindow(by=<lambda>, size=10, step=5)"),
        (SessionWindow(3, by=functools.partial(pow, 1)), "SessionWindow(gap=3, by=partial)"),
    ],
)
def test_a_graph_in_words_has_no_addresses(windows: Any, text: str) -> None:
    graph = entry("x", int).map(Policy()).filter(Policy().time).window(windows, len)
    described = graph.collect().describe()
    assert text in described
    assert " at 0x" not in described


@pytest.mark.parametrize("model", ["dynamic", "manual", "dedicated", "assigned"])
def test_watermarks_are_no_rows_in_statistics(model: Any) -> None:
    times = entry("x", int).map(lambda row: row)
    graph = times.window(TumblingWindow(10, by=lambda row: row), len).collect()
    with ActorSystem(workers=1) as system:
        run = system.run(graph, batch_size=2, threading=model)
        run.send("x", [1, Watermark(1), 2, Watermark(2), 13, Watermark(13)])
        run.finish()
        found = [(one.rows_in, one.rows_out) for one in run.statistics().operators]
    assert found == [(3, 3), (3, 2), (2, 0)]


def test_statistics_of_a_run_are_a_table_that_fits_a_screen() -> None:
    stream = entry("x", int)
    for number in range(60):
        stream = stream.map(lambda row: row, name=f"a rather long name of an operator, {number}")
    with ActorSystem(workers=1) as system:
        run = system.run(stream.collect())
        run.send("x", range(1_000))
        run.finish()
        lines = repr(run.statistics()).splitlines()
    assert lines[0].startswith("1,000 rows in ")
    assert " ".join(lines[1].split()) == "operator rows in rows out queued workers us a row busy s"
    assert len({len(line) for line in lines[1:-1]}) == 1
    assert max(map(len, lines)) <= 120
    assert len(lines) == 43
    assert lines[-1] == "... and 21 more operators"


def test_timers_workers_and_dead_letters_have_short_texts() -> None:
    class Clock(Actor[str]):
        def receive(self, message: str) -> Any:
            return self.every(2.5, "tick") if message == "every" else self.after(1.0, "tick")

    with ManualSystem(name="shop") as system:
        assert repr(system.dead_letters) == "<DeadLetters of 'shop': none; 0 failures of actors>"
        clock = system.spawn(Clock)
        once, every = clock.ask("once").result(), clock.ask("every").result()
        assert (repr(once), repr(every)) == ("<Timer once>", "<Timer every 2.5 s>")
        once.cancel()
        assert repr(once) == "<Timer once, over>"
        clock.stop()
        clock.tell("late")
        system.run_until_idle()
        assert repr(system.dead_letters) == (
            "<DeadLetters of 'shop': 1 stopped; 0 failures of actors>"
        )
        assert repr(system._worker) in (
            "<ManualWorker 'shop', idle>",
            "<ManualWorker 'shop', at work>",
        )
        assert repr(system.statistics()) == (
            "<Statistics, monitoring off: actors 0, workers 1, ends of channels 0>"
        )
