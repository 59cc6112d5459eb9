"""Unusable graphs, options and functions are refused, if possible on the driver."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

import graphs
from callboard import ActorSystem
from callboard.core.errors import ConfigError
from callboard.spark import spark_graph
from callboard.spark.errors import CaptureError
from callboard.streams import Graph, entry

Row = dict[str, Any]

SCHEMA = StructType([StructField("n", LongType()), StructField("word", StringType())])
ARROW = pa.schema([("n", pa.int64()), ("word", pa.string())])


def two_and_two() -> Graph[Any]:
    a, b = entry("a"), entry("b")
    return Graph(a.collect(name="one"), b.collect(name="other"))


ARROW_METHODS = ["map_partitions", "map_in_arrow", "apply_in_arrow", "cogroup_in_arrow"]


@pytest.mark.parametrize(
    ("options", "method", "says"),
    [
        ({}, "map_partitions", "the collectors 'one', 'other': choose one by output="),
        ({"output": "one"}, "map_in_arrow", "has the entries 'a', 'b': choose one by entry="),
        ({"output": "one", "entry": "c"}, "map_in_arrow", "graph's entries 'a', 'b', got 'c'"),
        ({"output": 7}, "foreach_partition", "collectors 'one', 'other', got 7"),
        (
            {"output": "one"},
            "cogroup_in_arrow",
            "needs the entries ('left', 'right'), got ('a', 'b')",
        ),
    ],
)
def test_a_graph_unfit_for_a_method_is_refused(options: Any, method: str, says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        getattr(spark_graph(two_and_two(), **options), method)
    assert says in str(refused.value)


def test_a_graph_without_a_collector_can_only_be_fed() -> None:
    graph = spark_graph(entry("x").to(print))
    for method in ARROW_METHODS[:3]:
        with pytest.raises(
            ConfigError, match="no collectors, which all functions but foreach_partition need"
        ):
            getattr(graph, method)


def test_the_graph_a_function_makes_is_checked_in_the_task() -> None:
    function = spark_graph(lambda system, context: two_and_two()).map_partitions
    with pytest.raises(ConfigError, match="the graph has the entries 'a', 'b': choose one"):
        list(function([1]))
    function = spark_graph(lambda system, context: 7).map_partitions  # type: ignore[arg-type,return-value]
    with pytest.raises(ConfigError, match="a graph or a stream to run in tasks, got 7"):
        list(function([1]))


def test_an_entry_and_a_collector_are_chosen_by_name() -> None:
    chosen = spark_graph(two_and_two(), entry="b", output="other")
    assert list(chosen.map_partitions(range(5))) == list(range(5))
    other = spark_graph(two_and_two(), entry="b", output="one")
    assert list(other.map_partitions(range(5))) == []


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"rows": "list"}, "rows must be one of batch, dict, tuple, got 'list'"),
        ({"drain_timeout": 0}, "drain_timeout"),
        ({"workers": 0}, "workers"),
        ({"config": 7}, "config expects a dict"),
        ({"batchsize": 7}, "an option of a run must be one of threading, placement"),
        ({"schema": LongType()}, "schema expects a StructType"),
    ],
)
def test_a_wrong_option_is_refused_at_the_call(options: Any, says: str) -> None:
    with pytest.raises(ConfigError) as refused:
        spark_graph(entry("x"), **options)
    assert says in str(refused.value)


def test_an_option_of_a_run_is_checked_in_the_task() -> None:
    with pytest.raises(ConfigError, match="threading must be one of"):
        list(spark_graph(entry("x"), threading="fast").map_partitions([1]))


@pytest.mark.parametrize("graph", [7, None, entry("x").key_by(lambda row: row)])
def test_only_graphs_and_streams_are_taken(graph: Any) -> None:
    with pytest.raises(ConfigError, match="a graph or a stream to run in tasks, got"):
        spark_graph(graph)


def test_a_function_that_does_not_take_a_system_and_a_context_is_refused() -> None:
    with pytest.raises(ConfigError, match="build\\(system, context\\)"):
        spark_graph(lambda system: entry("x"))  # type: ignore[arg-type,misc]


def test_a_graph_that_cannot_travel_is_refused() -> None:
    lock = threading.Lock()

    def captured(row: Any) -> Any:
        with lock:
            return row

    stream = entry("x").map(captured)
    with pytest.raises(CaptureError, match=r"stream \(Stream\) cannot be pickled"):
        spark_graph(stream)
    with pytest.raises(CaptureError, match=r"graph -> .*lock"):
        spark_graph(lambda system, context: entry("x").map(captured))
    with ActorSystem() as system, pytest.raises(CaptureError, match="graph"):
        spark_graph(entry("x").to(system.spawn(graphs.Echo)))
