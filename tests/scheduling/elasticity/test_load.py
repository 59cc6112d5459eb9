"""Growth and backlogs in a measurement of the load."""

from dataclasses import replace

from callboard.scheduling.elasticity.measurement import Measurement, growth, works_off

BEFORE = Measurement(level=2, seconds=1.0, throughput=1_000, busy=2.0, waiting=1_000)
MORE = replace(BEFORE, waiting=2_000)
LESS = replace(BEFORE, waiting=500)


def test_growth_is_a_part_of_what_is_handled() -> None:
    assert growth(MORE, BEFORE) == 1.0
    assert growth(LESS, BEFORE) == -0.5
    assert works_off(LESS, BEFORE) == 1.0
    assert works_off(MORE, BEFORE) is None


def test_nothing_is_known_without_a_period_before_or_of_a_few_rows() -> None:
    assert growth(MORE, None) == 0.0
    assert growth(replace(BEFORE, waiting=20), replace(BEFORE, waiting=0)) == 0.0


def test_a_backlog_is_judged_by_its_cost_or_few_rows_by_number() -> None:
    cheap = replace(MORE, waiting_cost=0.5)
    assert growth(cheap, BEFORE) == 0.0
    assert works_off(cheap, replace(BEFORE, waiting=3_000)) == 0.5
    few = replace(BEFORE, waiting=2, waiting_cost=990)
    assert growth(few, replace(BEFORE, waiting=0)) == 0.0


def test_behind_senders_that_wait_for_room_what_waits_says_nothing() -> None:
    for now in (MORE, LESS):
        full = replace(now, held_back=0.9)
        assert growth(full, BEFORE) == 0.0
        assert works_off(full, BEFORE) is None
    assert growth(replace(MORE, held_back=0.1), BEFORE) == 1.0
