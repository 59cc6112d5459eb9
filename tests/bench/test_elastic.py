"""The benchmarks of the elastic level count correctly, at any speed."""

from typing import Any

import pytest

from callboard.scheduling.elasticity.team_level import LevelChange, LevelStatistics

pytestmark = pytest.mark.usefixtures("bench_modules")


def play(module: str, periods: int, **options: Any) -> Any:
    import one
    import players

    for natives in ("actors", "streams"):
        if why := players.built_actors(natives):
            pytest.skip(why)
    return one.play(f"elastic.{module}", "none", periods, options)


@pytest.mark.parametrize("shape", ["pipeline", "wide", "mixed", "asleep"])
@pytest.mark.parametrize(
    "how",
    [
        {"threading": "manual"},
        {"threading": "dedicated"},
        {"workers": 2},
        {"workers": 2, "strategy": "rates"},
        {"workers": 2, "strategy": "trends"},
    ],
    ids=lambda how: "-".join(map(str, how.values())),
)
def test_all_rows_come_through_every_shape_in_order(shape: str, how: dict[str, Any]) -> None:
    result = play("throughput", 6, shape=shape, operators=20, flops=10, period=0.02, **how)
    assert result.got == result.want
    assert (result.settled is not None) == ("strategy" in how)


@pytest.mark.parametrize("kind", ["native", "python"])
def test_actors_handle_what_they_send_themselves(kind: str) -> None:
    options = {"workers": 2, "strategy": "rates", "period": 0.02}
    result = play("actors", 6, kind=kind, flops=10, **options)
    assert result.got == result.want


@pytest.mark.parametrize("beside", ["graph", "actors"])
@pytest.mark.parametrize("measure", ["call", "rest", "look"])
def test_work_goes_on_beside_changes_of_level(beside: str, measure: str) -> None:
    result = play("changing_level", 3, beside=beside, measure=measure, quantile="worst")
    assert result.got == result.want
    assert result.value > 0


@pytest.mark.parametrize("phase", ["light", "idle"])
def test_a_load_that_changes_loses_no_row(phase: str) -> None:
    result = play("changing_load", 2, phase=phase, period=0.02)
    assert result.got == result.want


def level(*times: float) -> LevelStatistics:
    changes = tuple(LevelChange(time, 1, 2, "", 0.0) for time in times)
    return LevelStatistics(2, 1, 2, "", changes)


def test_a_level_is_found_with_the_last_change_of_its_first_periods() -> None:
    from elastic.levels import settling

    assert settling(None, 0, 1) == {}
    assert settling(level(), 5, 1) == {"settled": 0, "changes": 0}
    # One change is before the load began, and one after the periods in which a level is looked for.
    assert settling(level(4.5, 5.5, 7.9, 16), 5, 1) == {"settled": 3, "changes": 1}


def test_an_elastic_level_is_held_against_the_best_fixed_one() -> None:
    import judging
    from competitor import Sample, Score

    results = {
        "elastic_mixed_100": {
            "dynamic": Score([Sample(50)]),
            "dynamic, 2 workers": Score([Sample(80)]),
            "elastic, rates": Score([Sample(76, settled=3, changes=0)]),
        }
    }
    verdicts = [each for each in judging.judge(results) if each.measured is not None]
    assert [(each.measured, each.met) for each in verdicts] == [(0.95, True), (3, True)]
