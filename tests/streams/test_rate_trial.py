"""The trial of `processes="auto"`: rates in both places decide where the prediction is close."""

from __future__ import annotations

from itertools import pairwise

import pytest

from callboard.streams.processes.rate_trial import RateTrial

CLOSE, CLEARLY_AWAY, CLEARLY_HERE = 0.9, 0.5, 1.3
SECOND = 1_000_000_000
ROUND = 1000  # rows


class Stream:
    """An operator whose rows come at given rates, in the program and in processes."""

    def __init__(self, here: float, away: float) -> None:
        self.now = 5 * SECOND
        self.rates = here, away
        self.is_here = True
        self.trial = RateTrial(lambda: self.now)

    def run(self, seconds: float, ratio: float = CLOSE) -> float:
        """Run rounds for some time. Returns the share of time in the processes."""
        begun, away = self.now, 0
        while self.now < begun + seconds * SECOND:
            spent = int(ROUND / self.rates[not self.is_here] * SECOND)
            self.now += spent
            away += spent * (not self.is_here)
            self.trial.note(not self.is_here, ROUND)
            self.is_here = self.trial.keeps_here(self.is_here, ratio)
        return away / (self.now - begun)


def test_a_clear_prediction_needs_no_trial() -> None:
    stream = Stream(here=1e6, away=1.0)  # never measured
    stream.run(0.001, CLEARLY_AWAY)
    assert not stream.is_here
    stream = Stream(here=1e6, away=2e6)
    assert stream.run(10, CLEARLY_HERE) == 0
    assert stream.trial.result == ""


def test_rows_stay_in_the_processes_if_they_come_faster_from_there() -> None:
    stream = Stream(here=1e6, away=1.2e6)
    stream.run(1)
    assert not stream.is_here
    assert stream.run(60) > 0.95
    assert stream.trial.result == (
        "; tried: 1,000,000 rows/s in the program, 1,200,000 in processes"
    )


@pytest.mark.parametrize("away", [1.0e6, 0.5e6])
def test_rows_return_if_they_come_no_faster_from_the_processes(away: float) -> None:
    stream = Stream(here=1e6, away=away)
    assert 0 < stream.run(1) < 0.3
    assert stream.is_here
    assert stream.run(60) < 0.05


def test_the_places_are_compared_again_since_the_machine_may_have_changed() -> None:
    stream = Stream(here=1e6, away=1.5e6)
    stream.run(5)
    assert not stream.is_here
    stream.rates = 1e6, 0.5e6  # others need the cores
    stream.run(10)
    assert stream.is_here
    stream.rates = 1e6, 1.5e6
    stream.run(30)
    assert not stream.is_here


def test_each_pause_between_trials_is_twice_as_long_up_to_a_minute() -> None:
    stream = Stream(here=1e6, away=0.5e6)
    begins: list[int] = []
    was_here = True
    while len(begins) < 9:
        stream.run(0.001)
        if was_here and not stream.is_here:
            begins.append(stream.now)
        was_here = stream.is_here
    pauses = [round((later - earlier) / SECOND) for earlier, later in pairwise(begins)]
    assert pauses == [2, 4, 8, 16, 32, 64, 64, 64]


def test_a_restart_forgets_the_rate_of_the_place() -> None:
    stream = Stream(here=1e3, away=1e6)
    for _ in range(20):  # slow rounds
        stream.trial.note(False, ROUND)
        stream.now += SECOND // 100
    stream.trial.restart()
    stream.rates = 2e6, 1e6
    stream.run(1)
    assert stream.is_here
    assert "2,000,000 rows/s in the program" in stream.trial.result
