"""`schema=` lets through what Spark reads right, and nothing that Spark refuses or reads wrong."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import types as s

import graphs
from callboard import Actor
from callboard.core.errors import ConfigError
from callboard.spark import map_in_arrow
from callboard.spark.errors import SchemaError
from jobs import Failure

pytestmark = pytest.mark.timeout(300)  # Spark starts slowly on a busy machine


class Given(Actor[Any]):
    """Answers each message with one array as the column x."""

    def __init__(self, column: pa.Array) -> None:
        self.answer = pa.record_batch([column], names=["x"])

    def receive(self, message: Any) -> pa.RecordBatch:
        return self.answer


def struct(dtype: str | s.DataType, *, nullable: bool = True) -> s.StructType:
    if isinstance(dtype, str):
        dtype = s._parse_datatype_string(dtype)
    return s.StructType([s.StructField("x", dtype, nullable)])


NOON = dt.datetime(2026, 1, 2, 12, 0, 0, 25)
NOON_UTC = NOON.replace(tzinfo=dt.UTC)

READ_RIGHT = [
    ("string collate UTF8_LCASE", pa.array(["a", None]), ["a", None]),
    ("string", pa.array(["a", None], pa.large_string()), ["a", None]),
    ("string", pa.array(["a", "b" * 20], pa.string_view()), ["a", "b" * 20]),
    ("binary", pa.array([b"a", b"b" * 20], pa.binary_view()), [b"a", b"b" * 20]),
    (graphs.Point(), pa.array([[1.0, 2.0], None]), [(1.0, 2.0), None]),
    ("long", pa.nulls(2), [None, None]),
    ("string", pa.nulls(2), [None, None]),
    ("array<string>", pa.array([[None], None]), [[None], None]),
    ("array<long>", pa.array([[1, 2], [3]], pa.list_view(pa.int64())), [[1, 2], [3]]),
    ("map<string,long>", pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())), [{"a": 1}]),
    ("struct<a:long>", pa.array([{"a": 1}, None]), [Row(a=1), None]),
    ("decimal(20,4)", pa.array([Decimal("1.25")], pa.decimal128(10, 2)), [Decimal("1.2500")]),
    ("timestamp_ntz", pa.array([NOON], pa.timestamp("us")), [NOON]),
    ("interval day", pa.array([5], pa.duration("us")), [dt.timedelta(microseconds=5)]),
]


@pytest.mark.parametrize(("dtype", "column", "values"), READ_RIGHT)
def test_readable_columns_pass(
    spark: SparkSession, dtype: Any, column: pa.Array, values: list[Any]
) -> None:
    if "view" in str(column.type) and not hasattr(s, "TimeType"):
        pytest.skip("before PySpark 4.1 Spark reads no views")
    schema = struct(dtype)
    function = map_in_arrow(lambda system, _: system.spawn(Given, column), schema=schema)
    frame = spark.range(1, numPartitions=1).mapInArrow(function, schema)
    assert [row.x for row in frame.collect()] == values


INNER = s.StructType([s.StructField("a", s.LongType(), False)])

READ_WRONG = [
    ("string", pa.array(["a"]).dictionary_encode(), "cast it to string"),
    ("int", pa.array([7]).dictionary_encode(), "cast it to int32"),
    ("array<string>", pa.array([["a"]], pa.list_(pa.dictionary(pa.int32(), pa.string()))), "list"),
    ("timestamp_ntz", pa.array([NOON], pa.timestamp("ns")), r"cast it to timestamp\[us\]"),
    ("timestamp", pa.array([NOON_UTC], pa.timestamp("ns", "UTC")), r"timestamp\[us, tz=UTC\]"),
    ("interval day to second", pa.array([5], pa.duration("s")), r"cast it to duration\[us\]"),
    ("time", pa.array([5], pa.time64("us")), r"cast it to time64\[ns\]"),
    ("binary", pa.array([b"ab"], pa.binary(2)), "cast it to binary"),
    ("array<long>", pa.array([[1]], pa.large_list(pa.int64())), "cast it to list"),
    ("array<long>", pa.array([[1, 2]], pa.list_(pa.int64(), 2)), "cast it to list"),
    ("decimal(10,2)", pa.array([Decimal("1.25")], pa.decimal256(10, 2)), "cast it to decimal128"),
    ("date", pa.array([7], pa.int32()), "cast it to date32"),
    ("timestamp", pa.array([7], pa.int64()), "cast it to timestamp"),
    ("void", pa.array([7]), "cast it to null"),
]


@pytest.mark.parametrize(("dtype", "column", "says"), READ_WRONG)
def test_a_column_that_spark_misreads_is_refused_with_the_right_type(
    spark: SparkSession, failure_of: Failure, dtype: str, column: pa.Array, says: str
) -> None:
    if dtype == "time" and not hasattr(s, "TimeType"):
        pytest.skip("before PySpark 4.1 Spark has no such type")
    schema = struct(dtype)
    function = map_in_arrow(lambda system, _: system.spawn(Given, column), schema=schema)
    with pytest.raises(SchemaError, match=f"Spark cannot read .* from column 'x' .*{says}"):
        list(function([pa.record_batch([column], names=["x"])]))
    assert not is_read_right(spark, schema, column)


NULLS = [
    (struct(s.LongType(), nullable=False), pa.array([1, None])),
    (struct(s.StringType(), nullable=False), pa.nulls(1)),
    (struct(s.ArrayType(s.LongType(), False)), pa.array([None, [1, None]])),
    (struct(s.ArrayType(INNER)), pa.array([[{"a": None}]], pa.list_(pa.struct({"a": pa.int64()})))),
    (
        struct(s.MapType(s.StringType(), s.LongType(), False)),
        pa.array([[("a", 1)], None, [("b", None)]], pa.map_(pa.string(), pa.int64())),
    ),
    (struct(INNER), pa.array([{"a": 1}, {"a": None}])),
    (struct(graphs.Point()), pa.array([[1.0, None]])),
]


@pytest.mark.parametrize(("schema", "column"), NULLS)
def test_a_null_where_the_schema_allows_none_is_refused_with_the_columns_name(
    spark: SparkSession, schema: s.StructType, column: pa.Array
) -> None:
    function = map_in_arrow(lambda system, _: system.spawn(Given, column), schema=schema)
    with pytest.raises(SchemaError, match="a null in column 'x', which schema= does not allow"):
        list(function([pa.record_batch([column], names=["x"])]))
    assert not is_read_right(spark, schema, column)


@pytest.mark.parametrize(
    ("schema", "column", "values"),
    [
        (struct(s.LongType(), nullable=False), pa.array([None, 1, 2]).slice(1), [1, 2]),
        (struct(s.ArrayType(s.LongType(), False)), pa.array([[None], [1]]).slice(1), [[1]]),
        (struct(INNER), pa.array([{"a": None}, {"a": 1}, None]).slice(1), [Row(a=1), None]),
        (
            struct(s.MapType(s.StringType(), s.LongType(), False)),
            pa.array([[("a", None)], [("b", 2)]], pa.map_(pa.string(), pa.int64())).slice(1),
            [{"b": 2}],
        ),
    ],
)
def test_a_null_outside_of_what_is_answered_does_not_count(
    spark: SparkSession, schema: s.StructType, column: pa.Array, values: list[Any]
) -> None:
    function = map_in_arrow(lambda system, _: system.spawn(Given, column), schema=schema)
    frame = spark.range(1, numPartitions=1).mapInArrow(function, schema)
    assert [row.x for row in frame.collect()] == values


@pytest.mark.parametrize("schema", ["long", 3, s.LongType()])
def test_a_schema_without_columns_is_refused(spark: SparkSession, schema: Any) -> None:
    with pytest.raises(
        ConfigError, match="schema expects a StructType, or a string of columns' names"
    ):
        map_in_arrow(lambda system, _: system.spawn(Given, pa.nulls(1)), schema=schema)


def is_read_right(spark: SparkSession, schema: s.StructType, column: pa.Array) -> bool:
    """Tell whether Spark itself takes the column, and for what it is."""

    def give(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.record_batch([column], names=["x"])

    try:
        rows = spark.range(1, numPartitions=1).mapInArrow(give, schema).collect()
    except Exception:  # of many kinds
        return False
    return bool([row.x for row in rows] == column.to_pylist())
