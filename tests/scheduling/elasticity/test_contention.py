"""Contention: workers wait for each other or for a processor, so fewer would do as much."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from callboard.scheduling.elasticity.measurement import Measurement
from callboard.scheduling.elasticity.rates import Rates
from tests.scheduling.elasticity.model import System, changes, law, uniform

ONE = Measurement(level=1, seconds=1.0, throughput=1000.0, busy=0.85)
TWO = Measurement(level=2, seconds=1.0, throughput=700.0, busy=1.2)


@dataclass
class Fed(System):
    """One thread feeds a system as fast as it can: more workers are in its way, and spin."""

    fed: float = 1.0

    def measure(self) -> Measurement:
        throughput = 1000.0 * self.fed * 0.6 ** (self.level - 1)
        busy = 0.85 if self.level == 1 else 0.6 * self.level
        noise: Callable[[], float] = self.noise
        return Measurement(self.level, 1.0, throughput * noise(), min(self.level, busy * noise()))


def after(*measurements: Measurement) -> tuple[int, str]:
    rates = Rates(1, 2)
    for measurement in measurements:
        decision = rates.decide(measurement)
    return decision.level, decision.reason


def test_workers_that_only_take_longer_for_each_message_are_given_up() -> None:
    assert after(ONE)[0] == 2
    assert after(ONE, TWO) == (
        1,
        "2 workers did 700 a second, no more than 1 worker in less of their time: 1,000 a second.",
    )


def test_a_smaller_load_is_not_contention() -> None:
    """Half of the messages leave the workers idle for half of the time, or nearly."""
    assert after(ONE, replace(TWO, throughput=500.0, busy=0.6))[0] == 2


def test_workers_that_do_more_are_kept_whatever_a_message_costs() -> None:
    assert after(ONE, replace(TWO, throughput=1001.0, busy=1.7))[0] == 2


def test_a_few_long_messages_show_nothing() -> None:
    few = replace(ONE, throughput=2.0)
    assert after(few, replace(TWO, throughput=1.0))[0] == 2


@given(st.integers(0, 10**6))
def test_the_level_is_found_in_five_periods_and_kept_in_noise(seed: int) -> None:
    noise = uniform(Random(seed), 0.1)
    system = Fed(Rates(1, 2), law(0, 0), noise=noise).run(5)
    assert system.level == 1
    assert changes(system.run(50).levels[4:]) == 0


def test_another_load_is_tried_with_more_workers_again() -> None:
    system = Fed(Rates(1, 2), law(0, 0))
    system.run(10)
    system.fed = 3.0
    assert 2 in system.run(4).levels[10:]
    assert system.run(10).level == 1


STARVED = Measurement(level=2, seconds=1.0, throughput=700.0, busy=1.4, starved=0.9)


def kept_at_two() -> Rates:
    rates = Rates(1, 2)
    for _ in range(3):
        assert rates.decide(STARVED).level == 2
    return rates


def test_workers_that_wait_for_a_processor_are_tried_with_fewer() -> None:
    decision = kept_at_two().decide(STARVED)
    assert decision.level == 1
    assert decision.reason == (
        "2 workers did 700 a second, and 0.9 of 1.4 that were busy waited for a processor: "
        "1 may do as much."
    )


def test_fewer_that_do_as_much_stay() -> None:
    """Whether they are all busy, or not quite as many messages came."""
    for throughput, busy in ((701.0, 1.0), (570.0, 0.7)):
        rates = kept_at_two()
        rates.decide(STARVED)
        for _ in range(50):
            one = Measurement(level=1, seconds=1.0, throughput=throughput, busy=busy)
            assert rates.decide(one).level == 1


def test_fewer_that_do_less_are_left_at_once_and_not_tried_again() -> None:
    for throughput, busy in ((690.0, 1.0), (550.0, 0.7)):
        rates = kept_at_two()
        rates.decide(STARVED)
        one = Measurement(level=1, seconds=1.0, throughput=throughput, busy=busy)
        decision = rates.decide(one)
        assert decision.level == 2
        assert decision.reason.endswith("a second, and 2 workers did 700 a second.")
        for _ in range(50):
            assert rates.decide(STARVED).level == 2


def test_one_starved_period_moves_nothing_nor_do_workers_that_have_processors() -> None:
    rates = kept_at_two()
    for starved in (0.3, 0.9, 0.3, 0.9, 0.3, 0.3):
        assert rates.decide(replace(STARVED, starved=starved)).level == 2


def test_a_fifth_of_the_time_without_a_processor_changes_nothing() -> None:
    """Without it four workers would be enough, but the level rests in its band."""
    rates, now = Rates(1, 8), Measurement(level=5, seconds=1.0, throughput=700.0, busy=2.6)
    for _ in range(10):
        assert rates.decide(replace(now, starved=0.5)).level == 5


@given(st.floats(0.02, 0.98), st.floats(0, 1), st.integers(2, 64), st.integers(0, 10**6))
def test_starved_or_not_the_level_rests(part: float, of: float, level: int, seed: int) -> None:
    """Fewer do as much at each level: it goes down, and not up and down."""
    noise, rates, levels = uniform(Random(seed), 0.1), Rates(1, 64), [level]
    for _ in range(80):
        now = levels[-1]
        busy = min(float(now), part * level * noise())
        starved = of * busy
        decision = rates.decide(Measurement(now, 1.0, 700.0 * noise(), busy, starved))
        levels.append(decision.level)
    assert changes(levels[30:]) == 0
