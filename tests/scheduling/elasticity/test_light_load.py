"""A light load: the level follows from how many workers were busy."""

from dataclasses import replace

import pytest

from callboard.scheduling.elasticity.measurement import Measurement
from callboard.scheduling.elasticity.rates import Rates
from tests.scheduling.elasticity.model import System, changes, law, lock


def light(level: int, busy: float, throughput: float = 210_000.0) -> Measurement:
    return Measurement(level=level, seconds=1.0, throughput=throughput, busy=busy)


def after(*measurements: Measurement) -> tuple[int, str]:
    rates = Rates(1, 64)
    for measurement in measurements:
        decision = rates.decide(measurement)
    return decision.level, decision.reason


@pytest.mark.parametrize(
    ("level", "busy", "next_level"),
    [
        (4, 2.32, 4),  # 58%: inside the band
        (4, 1.7, 3),
        (64, 1.3, 2),
        (64, 0.0, 1),
        (2, 1.3, 2),
        (1, 0.7, 1),
        (2, 0.71, 1),  # nearly what one worker should be busy at most
        (2, 0.73, 2),
        (3, 1.42, 2),
        (10, 7.6, 12),  # 76%: by noise it may be above the band
    ],
)
def test_the_second_period_gives_the_level(level: int, busy: float, next_level: int) -> None:
    assert after(light(level, busy))[0] == level
    assert after(light(level, busy), light(level, busy))[0] == next_level


def test_the_reason_has_the_numbers() -> None:
    assert after(light(4, 1.7), light(4, 1.7))[1] == (
        "3 of 4 workers are enough for 210,000 a second: they were busy 42% of the time."
    )
    assert after(light(1, 0.6, 20.0), light(1, 0.6, 20.0))[1] == (
        "1 worker is enough for 20 a second: it was busy 60% of the time."
    )


def test_the_larger_of_two_periods_counts() -> None:
    assert after(light(64, 1.0), light(64, 6.0))[0] == 10


def test_one_period_that_is_otherwise_moves_nothing() -> None:
    rates = Rates(1, 64)
    for busy in (6.0, 6.0, 6.0, 3.5, 6.0, 6.0):
        assert rates.decide(light(10, busy)).level == 10


def test_a_level_does_not_fall_while_a_backlog_is_worked_off() -> None:
    rates = Rates(1, 64)
    for waiting in (900_000.0, 700_000.0, 500_000.0, 300_000.0):
        now = replace(light(16, 5.0, 100_000.0), waiting=waiting)
        decision = rates.decide(now)
        assert decision.level == 16
    assert decision.reason.endswith("300,000 still wait.")
    assert rates.decide(light(16, 5.0, 100_000.0)).level == 16
    assert rates.decide(light(16, 5.0, 100_000.0)).level == 8


def test_a_backlog_raises_the_level_at_once_and_straight_to_what_it_needs() -> None:
    rates = Rates(1, 64)
    rates.decide(light(2, 1.2, 1000.0))
    rates.decide(light(2, 1.2, 1000.0))
    decision = rates.decide(replace(light(2, 2.0, 1000.0), waiting=9000.0))
    assert decision.level == 31  # ten times as much as 2 workers do, at 65% of their time
    assert decision.reason == "2 workers did 1,000 a second, and 9,000 wait: 31 should be enough."


def test_an_initial_backlog_does_not_keep_one_worker() -> None:
    """A source that ends leaves a backlog that becomes smaller: it is to be gone soon."""
    system = System(Rates(1, 16), law(0, 0), 1, offered=0, waiting=100_000).run(2)
    assert system.level > 8
    assert system.run(9).waiting == 0


def test_a_few_rows_that_wait_are_no_backlog() -> None:
    rates = Rates(1, 64)
    for waiting in (0.0, 9.0, 0.0, 8.0, 0.0):
        assert rates.decide(replace(light(1, 0.7, 20.0), waiting=waiting)).level == 1


def test_a_level_that_was_too_low_is_left_and_not_tried_again() -> None:
    """At eight workers each is busy for half of its time, and six workers do far less."""

    def cliff(level: int) -> float:
        return 1000.0 * level if level >= 8 else 100.0 * level

    system = System(Rates(1, 16), cliff, 16, offered=5000).run(20)
    assert system.level == 8 + 1 or cliff(system.level) >= 5000
    assert changes(system.run(50).levels[20:]) == 0
    assert system.waiting == 0


def test_a_lock_that_workers_wait_for_is_left_behind() -> None:
    system = System(Rates(1, 64), lock(8, 0.1), 64, offered=5500).run(15)
    assert system.level == 8
    assert system.waiting == 0


def test_a_load_that_grows_within_the_band_moves_nothing() -> None:
    system = System(Rates(1, 64), law(0, 0), 10, offered=6000).run(5)
    system.offered = 7000
    assert changes(system.run(20).levels) == 0


def test_a_level_at_which_not_all_are_busy_is_kept_and_none_below_is_tried() -> None:
    """What such a level did is what came in: less than it can do, but no sign of a lock."""
    rates = Rates(1, 64)
    decision = rates.decide(light(59, 52.0))
    assert decision.level == 64
    assert decision.reason == (
        "59 workers did 210,000 a second, busy for 88% of the time: 64 should be enough."
    )
    decision = rates.decide(light(64, 52.0))
    assert decision.level == 64
    assert decision.reason == "64 workers did 210,000 a second, and not all were busy all the time."
    assert rates.decide(light(64, 52.0)).level == 64


def test_a_load_that_nearly_fills_the_highest_level_is_one_load_in_noise() -> None:
    """It is light in some periods, and full in others, by a threshold between the two."""
    rates = Rates(1, 64)
    for part in (0.78, 0.77, 0.95, 0.93, 0.8, 0.91, 0.92, 0.9, 0.79, 0.94):
        assert rates.decide(light(64, part * 64)).level == 64


def test_a_load_that_fills_the_workers_gets_more_where_there_are_more() -> None:
    rates = Rates(1, 64)
    for _ in range(3):
        assert rates.decide(light(10, 7.1)).level == 10
    assert rates.decide(light(10, 9.0)).level > 10  # less than a quarter more, and no noise


def test_another_load_at_the_highest_level_is_searched_for() -> None:
    """Of more, eight workers do the most: what was light is a load to which more do harm."""
    system = System(Rates(1, 16), law(0, 0), 16, offered=9500).run(5)
    assert system.level == 16
    system.capacity, system.offered = lock(8, 0.3), None
    assert system.run(6).level == 8


def test_a_backlog_that_grows_raises_a_level_that_was_kept_with_some_to_spare() -> None:
    rates = Rates(1, 64)
    for level, busy in ((4, 3.5), (6, 5.2), (6, 5.2)):
        assert rates.decide(light(level, busy, 1000.0)).level == 6
    now = replace(light(6, 6.0, 1100.0), waiting=300.0)
    assert rates.decide(now).level == 12


def test_work_on_a_backlog_is_not_another_load() -> None:
    rates = Rates(1, 1)
    for _ in range(3):
        rates.decide(light(1, 1.0, 1000.0))
    for waiting in (9000.0, 8000.0, 7000.0, 6000.0):
        decision = rates.decide(replace(light(1, 1.0, 1400.0), waiting=waiting))
    assert decision.reason == "1 worker works off what waits: 6,000 are left."
    assert rates.decide(light(1, 1.0, 1000.0)).reason.startswith("1 worker works off")
    assert rates.decide(light(1, 1.0, 1000.0)).reason.endswith("a second: the load is the same.")
