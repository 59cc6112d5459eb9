"""Strategies find the best level of every shape, and stay there."""

from random import Random
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.scheduling.elasticity.rates import Rates
from tests.scheduling.elasticity.model import (
    SHAPES,
    Capacity,
    System,
    changes,
    law,
    lock,
    peak,
    plateau,
    uniform,
)

MOST = 64
STARTS = [1, 4, 16, 64]
each_shape = pytest.mark.parametrize("shape", SHAPES)

starts = st.integers(1, MOST)
capacities = st.one_of(
    st.builds(law, st.floats(0, 1), st.floats(0, 0.3)),
    st.builds(plateau, starts),
    st.builds(peak, starts, st.floats(0.2, 1)),
    st.builds(lock, starts, st.floats(0.02, 0.3)),
)


@each_shape
@pytest.mark.parametrize("start", STARTS)
def test_rates_has_found_the_level_after_five_periods_and_stays(shape: str, start: int) -> None:
    system = System(Rates(1, MOST), SHAPES[shape], start).run(5)
    assert system.share(MOST) >= 0.95
    assert changes(system.run(50).levels[4:]) == 0


@each_shape
@pytest.mark.parametrize("busy_part", [0.3, 0.7])
def test_rates_finds_the_level_of_contending_workers(shape: str, busy_part: float) -> None:
    system = System(Rates(1, MOST), SHAPES[shape], busy_part=busy_part).run(6)
    assert system.share(MOST) >= 0.95
    assert changes(system.run(50).levels[5:]) == 0


@each_shape
def test_rates_finds_good_levels_in_noise_of_a_tenth_and_stays(shape: str) -> None:
    shares = []
    for start in STARTS:
        for seed in range(2):
            noise = uniform(Random(seed), 0.1)
            system = System(Rates(1, MOST), SHAPES[shape], start, noise=noise).run(6)
            shares.append(system.share(MOST))
            assert changes(system.run(50).levels[5:]) == 0
    assert mean(shares) >= 0.9


@given(capacities, starts)
def test_rates_finds_the_level_of_any_shape(capacity: Capacity, start: int) -> None:
    """Each level costs a period: a sharp peak between those that were tried is met nearly."""
    system = System(Rates(1, MOST), capacity, start).run(6)
    assert system.share(MOST) >= 0.7
    assert changes(system.run(50).levels[5:]) == 0


@given(capacities, starts, st.data())
def test_noise_moves_no_found_level(capacity: Capacity, start: int, data: st.DataObject) -> None:
    noise = data.draw(st.lists(st.floats(0.9, 1.1), min_size=1, max_size=24))
    turns = iter(range(10**6))
    system = System(Rates(1, MOST), capacity, start, noise=lambda: noise[next(turns) % len(noise)])
    assert changes(system.run(56).levels[5:]) == 0


@given(st.floats(0.01, 58), starts, st.integers(0, 10**6))
def test_a_load_keeps_its_level_in_noise(offered: float, start: int, seed: int) -> None:
    """Up to nine tenths of what the largest level can do: light in one period, full in the next."""
    noise = uniform(Random(seed), 0.1)
    system = System(Rates(1, MOST), law(0, 0), start, offered=1000 * offered, noise=noise).run(20)
    assert system.level >= offered
    assert changes(system.run(50).levels[19:]) == 0


@given(st.floats(0, 1.0), st.floats(0.01, 3), st.integers(1, 16))
def test_a_load_of_ten_times_as_much_and_back(serial: float, few: float, start: int) -> None:
    capacity = law(serial * 0.002, 0)
    system = System(Rates(1, MOST), capacity, start, offered=1000 * few).run(8)
    before = system.level
    system.offered = 10_000 * few
    system.run(5)
    assert capacity(system.level) >= system.offered
    system.run(30)
    assert system.waiting == 0
    system.offered = 1000 * few
    system.run(5)
    assert capacity(system.level) >= system.offered
    assert system.level <= max(before, few / 0.5 + 1)


@pytest.mark.parametrize("start", [1, 2, 8])
def test_a_load_that_nearly_fills_its_workers_and_then_has_no_limit(start: int) -> None:
    for offered in range(100, 8_000, 50):
        system = System(Rates(1, 8), law(0, 0), start, offered=offered).run(25)
        system.offered = None
        assert system.run(12).level == 8, f"{offered} a second before"


def test_an_idle_system_has_one_worker() -> None:
    system = System(Rates(1, MOST), law(0, 0), 64, offered=0).run(3)
    assert system.level == 1
