"""Statistics of skew: rows and time of partitions, and the most frequent keys."""

from __future__ import annotations

from collections import Counter as Counts
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard import ActorSystem, ConfigError
from callboard.scheduling.flow.threading_models import MODELS, Model
from callboard.streams import Watermark, entry
from callboard.streams.running.statistics import OperatorStatistics
from callboard.testing import ManualSystem
from tests.streams.counting import counted, rows_of_partitions, statistics_of


@given(st.lists(st.integers(0, 9) | st.just(Watermark(0))), st.integers(0, 1000))
def test_each_row_is_counted_in_its_partition(rows: list[Any], seed: int) -> None:
    keys = Counts(row for row in rows if isinstance(row, int))
    with ManualSystem(seed) as system:
        run = system.run(counted(lambda key: key, partitions=10), batch_size=7)
        run.send("rows", rows)
        run.finish()
        assert rows_of_partitions(run) == tuple(keys[key] for key in range(10))
        most, total = max(keys.values(), default=0), keys.total()
        assert statistics_of(run).busiest == (most / total if total else 0.0)


def test_partitions_say_how_long_workers_were_at_them() -> None:
    with ActorSystem(workers=2) as system:
        run = system.run(counted(lambda key: key, partitions=3), batch_size=2)
        run.send("rows", [0, 1] * 20)
        run.finish()
        *used, unused = statistics_of(run).partitions
        assert [partition.rows for partition in used] == [20, 20]
        assert all(partition.busy > 0.0 for partition in used)
        assert (unused.rows, unused.busy) == (0, 0.0)


def test_an_undivided_operator_has_no_partitions() -> None:
    with ActorSystem(workers=1) as system:
        run = system.run(counted(None))
        run.send("rows", range(10))
        run.finish()
        assert statistics_of(run).partitions == ()
        assert statistics_of(run).busiest == 0.0


def test_the_busiest_lane_of_a_join_counts_as_a_partition_does() -> None:
    of_lanes = OperatorStatistics("join", 0, 0, 0.0, 0, 0.0, 1.0, 0.0, lanes=(1, 3))
    assert of_lanes.busiest == 0.75


# --- hot keys ------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", MODELS)
def test_keys_that_come_most_often_are_shown_whoever_runs_the_operator(model: Model) -> None:
    rows = [*"abracadabra", Watermark(0)]
    for system in (ManualSystem(), ActorSystem(workers=2)):
        with system:
            run = system.run(counted(None), hot_keys=2, batch_size=3, threading=model)
            run.send("rows", rows)
            run.finish(timeout=60)
            assert statistics_of(run).hot_keys[0] == ("a", 5, 0)
            assert [each.count for each in statistics_of(run).hot_keys] == [5, 2]


@given(st.lists(st.integers(0, 30) | st.none()), st.integers(1, 5), st.integers(0, 1000))
def test_each_key_is_counted_once(rows: list[Any], most: int, seed: int) -> None:
    with ManualSystem(seed) as system:
        run = system.run(counted(None), hot_keys=most, batch_size=4)
        run.send("rows", rows)
        run.finish()
        hot = statistics_of(run).hot_keys
    keys = Counts(rows)
    assert [each.count for each in hot] == [count for _, count in keys.most_common(most)]
    assert all(keys[each.key] == each.count and each.error == 0 for each in hot)


def test_more_keys_than_there_are_counters_for_give_counts_with_errors() -> None:
    rows = [row for number in range(1000) for row in (number, "hot")]
    with ManualSystem() as system:
        run = system.run(counted(None), hot_keys=1)
        run.send("rows", rows)
        run.finish()
        (hottest,) = statistics_of(run).hot_keys
    assert hottest.key == "hot"
    assert hottest.count - hottest.error <= 1000 <= hottest.count <= 1000 + len(rows) / 100


def test_keys_are_shown_as_they_came(manual: ManualSystem) -> None:
    paris = timezone(timedelta(hours=1))
    noon = datetime(2026, 1, 1, 13, tzinfo=paris)
    run = manual.run(counted(None), hot_keys=1)
    run.send("rows", [noon, noon.astimezone(UTC)])
    run.finish()
    assert [str(each.key) for each in statistics_of(run).hot_keys] == [str(noon)]
    assert statistics_of(run).hot_keys[0].count == 2


def fails_at_odd(row: Any) -> Any:
    if row == 1:
        raise ValueError(row)
    return row


@pytest.mark.parametrize("workers", [1, 2])
def test_keys_that_cannot_be_counted_change_no_output(workers: int) -> None:
    keyed = entry("rows").key_by(fails_at_odd)
    graph = keyed.count(name="count", errors="skip").collect()
    rows = [0, 1, float("nan"), [2], 2, 2]
    with ActorSystem(workers=workers) as system:
        run = system.run(graph, hot_keys=3)
        run.send("rows", rows)
        assert run.finish() == graph.run_sequentially({"rows": rows}) == [(0, 1), (2, 1), (2, 2)]
        assert statistics_of(run).hot_keys == ((2, 2, 0), (0, 1, 0))


def test_keys_are_not_counted_unless_it_is_asked_for(manual: ManualSystem) -> None:
    run = manual.run(counted(None))
    run.send("rows", range(10))
    run.finish()
    assert statistics_of(run).hot_keys == ()


@pytest.mark.parametrize("most", [-1, 1.5, "3", True, 1001])
def test_hot_keys_are_a_whole_number(most: Any) -> None:
    message = "hot_keys must be a whole number from 0 to 1000"
    with ManualSystem() as system, pytest.raises(ConfigError, match=message):
        system.run(counted(None), hot_keys=most)


def test_hot_keys_of_a_graph_without_keys_are_refused() -> None:
    with ManualSystem() as system, pytest.raises(ConfigError, match="this graph has none"):
        system.run(entry("rows").count().collect(), hot_keys=3)
