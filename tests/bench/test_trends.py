"""The strategy of Schneider and Wu 2017: each rule, by its number in section 4.2.2."""

from random import Random

import pytest

from callboard.scheduling.elasticity.controller import Strategy
from callboard.scheduling.elasticity.decision import Decision
from callboard.scheduling.elasticity.measurement import Measurement
from tests.scheduling.elasticity.model import SHAPES, System, changes, uniform

pytestmark = pytest.mark.usefixtures("bench_modules")

MOST = 64
STARTS = [1, 4, 16, 64]


def make(least: int, most: int) -> Strategy:
    from elastic.trends import Trends

    return Trends(least, most)


def run(
    trends: Strategy, level: int, *throughputs: float, machine: float = 0.0
) -> tuple[list[int], Decision]:
    """Report one throughput after the other, each at the level that was decided."""
    levels = []
    for throughput in throughputs:
        now = Measurement(level, 10.0, throughput, busy=float(level), machine=machine)
        decision = trends.decide(now)
        level = decision.level
        levels.append(level)
    return levels, decision


def test_it_begins_upwards_and_goes_on_while_throughput_rises() -> None:
    """Rules 3 and 1; the steps grow with the level."""
    levels, decision = run(make(1, 16), 1, 100, 200, 300, 400, 600, 900, 1300)
    assert levels == [2, 3, 4, 6, 9, 13, 16]
    assert (
        decision.reason
        == "13 workers did 1,300 a second, and fewer did 900 a second: more are tried."
    )


def test_it_returns_where_more_workers_did_more() -> None:
    """Rule 2: after 3 and a lower throughput at 2."""
    trends = make(1, 16)
    assert run(trends, 1, 100, 200, 300, 290)[0] == [2, 3, 4, 3]
    assert run(trends, 3, 300)[0] == [3]


def test_levels_below_that_were_not_tried_are_tried() -> None:
    """Rule 4."""
    levels, decision = run(make(1, 16), 9, 100)
    assert levels == [6]
    assert decision.reason == "9 workers did 100 a second, and fewer have not been tried."


def test_a_level_that_does_no_more_than_the_one_below_is_left() -> None:
    """Rule 5; 5% are no difference."""
    levels, decision = run(make(1, 16), 1, 100, 105)
    assert levels == [2, 1]
    assert (
        decision.reason
        == "2 workers did 105 a second, which is no more than fewer did, 100 a second."
    )


def test_it_stays_at_the_best_level() -> None:
    """Rule 6."""
    levels, decision = run(make(1, 16), 1, 100, 200, 150, 200, 200, 200)
    assert levels == [2, 3, 2, 2, 2, 2]
    assert decision.reason == "2 workers did 200 a second: fewer did less, and more did no more."


def test_a_change_of_load_makes_it_search_again() -> None:
    """`changeInLoad`: at one level the throughput differs by more than 5% from the first one."""
    trends = make(1, 16)
    run(trends, 1, 100, 200, 150, 200, 200)
    levels, decision = run(trends, 2, 190, 180)
    assert levels == [2, 1]
    assert decision.reason.startswith("The load has changed. ")


def test_a_change_of_load_is_seen_on_the_return_to_a_level() -> None:
    trends = make(1, 16)
    run(trends, 1, 100, 200, 150)
    assert run(trends, 2, 400)[1].reason.startswith("The load has changed. ")


def test_no_worker_is_added_above_the_ceiling() -> None:
    levels, decision = run(make(1, 16), 1, 100, machine=0.81)
    assert levels == [1]
    assert decision.reason == (
        "1 worker did 100 a second. The machine is used to 81%, above 80%: none is added."
    )
    assert run(make(1, 16), 1, 100, machine=0.8)[0] == [2]


def test_nothing_is_learned_while_a_worker_cannot_be_suspended() -> None:
    trends = make(1, 16)
    run(trends, 1, 100, 200)
    stuck = ("worker 4, in Slow.receive",)
    decision = trends.decide(Measurement(3, 10.0, 100.0, busy=3.0, stuck=stuck))
    assert decision.level == 3
    assert "worker 4, in Slow.receive" in decision.reason
    assert run(trends, 3, 300)[0] == [4]  # 3 was not measured before


@pytest.mark.parametrize("least", [1, 3, 8])
def test_the_least_level_is_that_of_one_worker_in_the_paper(least: int) -> None:
    assert run(make(least, 8), least, 100)[0] == [min(8, least + 1 if least < 4 else 8)]


def test_a_level_beside_the_steps_is_left_for_one_of_them() -> None:
    assert run(make(1, 16), 7, 100)[0] == [6]


@pytest.mark.parametrize("shape", [name for name in SHAPES if "jump" not in name])
def test_it_comes_near_to_the_best_level_in_twenty_periods(shape: str) -> None:
    """The paper's rules take a level that is 5% better for no better, so it ends below the peak."""
    for start in STARTS:
        system = System(make(1, MOST), SHAPES[shape], start).run(20)
        assert system.share(MOST) >= 0.85
        assert changes(system.run(50).levels[19:]) == 0


def test_it_does_not_see_past_a_flat_beginning() -> None:
    system = System(make(1, MOST), SHAPES["jump at 16"], 1).run(20)
    assert system.share(MOST) == 0.5


def test_it_moves_on_in_noise_as_in_the_paper() -> None:
    noise = uniform(Random(1), 0.1)
    system = System(make(1, MOST), SHAPES["peak at 20"], 1, noise=noise).run(100)
    assert changes(system.levels[50:]) > 10
