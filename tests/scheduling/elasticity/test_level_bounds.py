"""Levels are rejected before they are tried: by lanes, by skew, by the machine."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.scheduling.elasticity.level_bounds import LevelBounds
from callboard.scheduling.elasticity.measurement import Measurement, StageLoad, useful_workers
from callboard.scheduling.elasticity.rates import Rates

FULL = Measurement(level=1, seconds=1.0, throughput=1000.0, busy=1.0)


def stage(rows: float, cost: float, most_lanes: int, busiest: float = 0.0) -> StageLoad:
    return StageLoad("each", rows, cost, most_lanes, busiest, 0.0)


def highest(now: Measurement, most: int = 64, processors: int = 64) -> int:
    return LevelBounds(1, most, 0.8, processors).highest(now)[0]


def test_without_stages_any_level_may_be_tried() -> None:
    assert highest(FULL) == 64


def test_stages_of_one_lane_bound_the_level() -> None:
    """Of one worker they take 0.2, 0.3 and 0.5: twice the rate fills the last, and needs 2."""
    stages = (stage(1000, 0.0002, 1), stage(1000, 0.0003, 1), stage(1000, 0.0005, 1))
    assert useful_workers(replace(FULL, stages=stages)) == pytest.approx(2.0)
    assert highest(replace(FULL, stages=stages)) == 3  # with the margin of a tenth


def test_a_stage_with_many_lanes_does_not_bound_the_level() -> None:
    assert highest(replace(FULL, stages=(stage(1000, 0.001, 64),))) == 64


def test_the_busiest_partition_counts_and_not_the_mean() -> None:
    even = stage(1000, 0.001, 16, busiest=1 / 16)
    skewed = stage(1000, 0.001, 16, busiest=0.5)
    assert useful_workers(replace(FULL, stages=(even,))) == pytest.approx(16)
    assert useful_workers(replace(FULL, stages=(skewed,))) == pytest.approx(2)


def test_a_cost_that_is_not_known_yet_bounds_nothing() -> None:
    assert highest(replace(FULL, stages=(stage(1000, 0.0, 1),))) == 64


def test_work_beside_the_stages_grows_with_them() -> None:
    """Half of what workers do is not in the stages' costs: it is in what is useful."""
    now = replace(FULL, stages=(stage(1000, 0.0005, 4),))
    assert useful_workers(now) == pytest.approx(8)


def test_rates_never_tries_a_level_that_the_lanes_cannot_use() -> None:
    stages = (stage(1000, 0.0005, 4), stage(1000, 0.0005, 2))
    rates, now = Rates(1, 64), replace(FULL, stages=stages)
    for _ in range(20):
        now = replace(now, level=rates.decide(now).level)
        now = replace(now, busy=float(now.level))
        assert now.level <= 5


def test_rates_comes_down_from_a_level_that_the_lanes_cannot_use() -> None:
    stages = (stage(4000, 0.00025, 1),)
    now = Measurement(level=64, seconds=1.0, throughput=4000.0, busy=2.0, stages=stages)
    rates = Rates(1, 64)
    for _ in range(5):
        now = replace(now, level=rates.decide(now).level)
    assert now.level == 4


@pytest.mark.parametrize(
    ("machine", "process", "bound"),
    [
        (0.80, 4.0, 16),  # not above the ceiling
        (0.90, 4.0, 5),  # of 16 processors 1.6 are free, and 4 are its own
        (1.00, 4.0, 4),
        (0.95, 15.2, 16),  # nobody else is there
        (0.95, 0.0, 4),  # its own part is not known
    ],
)
def test_a_full_machine_spares_the_other_cores(machine: float, process: float, bound: int) -> None:
    now = Measurement(4, 1.0, 1000.0, busy=4.0, machine=machine, process=process)
    assert highest(now, 16, processors=16) == bound


def test_no_worker_is_added_on_a_full_machine_and_the_reason_says_so() -> None:
    now = Measurement(2, 1.0, 1000.0, busy=1.7, machine=0.97, process=1.7)
    decision = Rates(1, 8, processors=8).decide(now)
    assert decision.level == 2
    assert "the machine is used to 97%, above 80%" in decision.reason


@given(st.integers(1, 64), st.integers(1, 64), st.floats(0, 1), st.floats(0, 64))
def test_bounds_are_within_levels(level: int, most: int, machine: float, process: float) -> None:
    now = Measurement(level, 1.0, 1.0, busy=1.0, machine=machine, process=process)
    bounds = LevelBounds(1, most, 0.8, 64)
    assert 1 <= bounds.highest(now)[0] <= most
    assert bounds.levels(bounds.highest(now)[0])[-1] == bounds.highest(now)[0]
