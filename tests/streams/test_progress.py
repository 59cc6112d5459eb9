"""The progress bar of a run."""

from __future__ import annotations

import io

import pytest

from callboard import ActorSystem
from callboard.streams import entry
from callboard.streams.running.statistics import Progress, progress_line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("file", [io.StringIO, Terminal])
def test_the_last_line_shows_all_rows(file: type[io.StringIO]) -> None:
    out = file()
    with ActorSystem() as system:
        run = system.run(entry("x").map(lambda n: n).collect())
        with Progress(run.statistics, total=1000, file=out):
            run.send("x", range(1000))
            run.finish(timeout=60)
    assert "100%  1,000 rows" in out.getvalue().splitlines()[-1]


def test_an_operator_for_which_rows_wait_is_named_with_their_number() -> None:
    with ActorSystem() as system:
        run = system.run(entry("x").collect())
        run.finish(timeout=60)
        statistics = run.statistics()
    assert "waiting" not in progress_line(statistics, 0, None, 0.0)
    lagging = statistics.operators[0].__class__("slow", 0, 0, 12.0, 1, 0.0, 1.0, 0.0)
    with_lag = statistics.__class__(**{**vars(statistics), "operators": (lagging,)})
    assert progress_line(with_lag, 5, 10, 2.0).endswith("50%  5 rows  2 rows/s  waiting: slow 12")


def test_a_wrong_period_is_refused() -> None:
    with ActorSystem() as system:
        run = system.run(entry("x").collect())
        with pytest.raises(ValueError, match="above 0 and at most 1e9, got 0"):
            run.progress(every=0)
        run.finish(timeout=60)
