"""With any measurement strategies stay within their bounds, and give a reason."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.scheduling.elasticity.measurement import Measurement, StageLoad
from callboard.scheduling.elasticity.rates import Rates

amounts = st.floats(0, 1e9)
stages = st.builds(
    StageLoad,
    name=st.sampled_from("abc"),
    rows=amounts,
    cost=st.floats(0, 1),
    most_lanes=st.integers(1, 64),
    busiest=st.floats(0, 1),
    waiting=amounts,
)


@st.composite
def periods(draw: st.DrawFn) -> Callable[[int], Measurement]:
    seconds = draw(st.sampled_from([0.001, 0.05, 1.0, 10.0]))
    throughput, waiting = draw(amounts), draw(amounts)
    part, machine = draw(st.floats(0, 1)), draw(st.floats(0, 1))
    starved = draw(st.floats(0, 1))
    stuck = draw(st.sampled_from([(), (), (), ("worker 3, in Slow.receive",)]))
    some = tuple(draw(st.lists(stages, max_size=3)))
    return lambda level: Measurement(
        level=level,
        seconds=seconds,
        throughput=throughput,
        busy=part * level,
        starved=starved * level,
        machine=machine,
        process=part * level,
        waiting=waiting,
        stages=some,
        stuck=stuck,
    )


@given(st.data())
def test_levels_are_within_the_bounds_and_each_has_a_reason(data: st.DataObject) -> None:
    least = data.draw(st.integers(1, 40))
    most = data.draw(st.integers(least, 80))
    strategy = Rates(least, most)
    level = data.draw(st.integers(least, most))
    for period in data.draw(st.lists(periods(), max_size=30)):
        now = period(level)
        decision = strategy.decide(now)
        assert least <= decision.level <= most
        assert decision.reason[0].isupper() or decision.reason[0].isdigit()
        assert decision.reason.endswith(".")
        if now.stuck:
            assert decision.level == level
            assert "worker 3, in Slow.receive" in decision.reason
        level = decision.level


@given(st.lists(periods(), max_size=20))
def test_a_decision_depends_on_measurements_alone(
    some: list[Callable[[int], Measurement]],
) -> None:
    one, other = Rates(1, 32), Rates(1, 32)
    level = 4
    for period in some:
        decision = one.decide(period(level))
        assert other.decide(period(level)) == decision
        level = decision.level


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -1.0])
def test_a_measurement_that_is_not_a_number_changes_nothing(wrong: float) -> None:
    decision = Rates(1, 8).decide(Measurement(level=3, seconds=1.0, throughput=wrong, busy=3.0))
    assert decision.level == 3
    assert decision.reason == "3 workers stay: the measurements are not numbers."


def test_a_short_period_after_a_change_is_not_acted_upon() -> None:
    rates = Rates(1, 8)
    level = rates.decide(Measurement(level=1, seconds=1.0, throughput=100.0, busy=1.0)).level
    assert level > 1
    decision = rates.decide(Measurement(level=level, seconds=0.02, throughput=1.0, busy=0.0))
    assert decision.level == level
    assert decision.reason == (
        f"{level} workers stay: 0.02 seconds after a change are too few to learn from."
    )
