"""Rows, states and outputs of `keyed_state` are equal by every method."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql.types import LongType, StructField, StructType

from callboard.spark import KeyedState, keyed_state
from callboard.spark.errors import SchemaError
from callboard.spark.frames.pandas_rows import records_of

pytestmark = pytest.mark.timeout(300)  # Spark starts slowly on a busy machine

NAN = float("nan")
LONGS = StructType([StructField("n", LongType())])


@pytest.fixture
def new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Take this process to New York."""
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


# --- rows out of pandas ---------------------------------------------------------------------------


def test_values_out_of_pandas_are_those_of_python() -> None:
    frame = pd.DataFrame(
        {
            "n": [2**53 + 1, 7],
            "text": ["a", NAN],
            "flag": [True, None],
            "price": [Decimal("1.10"), None],
            "day": [date(2024, 1, 1), None],
            "far": [timedelta(days=1), pd.NaT],
            "list": [np.array([2**53 + 1, 2]), None],
            "pair": [{"a": np.int64(2**53 + 1), "b": None}, None],
            "big": pd.array([2**53 + 1, None], "Int64"),
        }
    )
    first, second = records_of(frame)
    assert first == {
        "n": 2**53 + 1,
        "text": "a",
        "flag": True,
        "price": Decimal("1.10"),
        "day": date(2024, 1, 1),
        "far": timedelta(days=1),
        "list": [2**53 + 1, 2],
        "pair": {"a": 2**53 + 1, "b": None},
        "big": 2**53 + 1,
    }
    assert {type(value) for value in first["list"]} == {int}
    assert second == {"n": 7} | dict.fromkeys([*first][1:])


@pytest.mark.parametrize("values", [[1.0, NAN], [np.array([1.0, NAN])], [{"deep": NAN}]])
def test_numbers_beside_nulls_are_refused_by_the_name_of_their_column(values: Any) -> None:
    with pytest.raises(SchemaError, match=r"column 'n' has NaN, .* say rows=, .* use `processor`"):
        records_of(pd.DataFrame({"n": values}))


def test_the_schema_of_the_rows_says_that_numbers_beside_nulls_are_integers() -> None:
    found = records_of(pd.DataFrame({"n": [2.0**53 - 1, NAN]}), LONGS)
    assert repr(found) == "[{'n': 9007199254740991}, {'n': None}]"
    with pytest.raises(SchemaError, match=r"column 'n' has an integer .* made 9007199254740992.0"):
        records_of(pd.DataFrame({"n": [2.0**53, NAN]}), LONGS)


def test_nan_and_null_of_a_column_of_floats_are_told_apart_or_refused() -> None:
    schema = _schema("n double")
    assert records_of(pd.DataFrame({"n": [0.5, 2.0]}), schema) == [{"n": 0.5}, {"n": 2.0}]
    with pytest.raises(SchemaError, match=r"column 'n' has NaN, .*: use `processor`"):
        records_of(pd.DataFrame({"n": [0.5, NAN]}), schema)


def test_times_of_pandas_are_instants_clocks_or_refused(new_york: None) -> None:
    times = pd.DataFrame({"at": [pd.Timestamp("2024-11-03 02:30"), pd.NaT]})
    instant, none = records_of(times, _schema("at timestamp"))
    assert instant["at"] == datetime(2024, 11, 3, 7, 30, tzinfo=UTC)
    assert instant["at"].hour == 2
    assert none == {"at": None}
    [clock, _] = records_of(times, _schema("at timestamp_ntz"))
    assert repr(clock) == repr({"at": datetime(2024, 11, 3, 2, 30)})
    with pytest.raises(SchemaError, match=r"in column 'at', 2024-11-03 02:30:00 is of a timestamp"):
        records_of(times)


def test_a_time_that_clocks_show_twice_or_never_is_refused(new_york: None) -> None:
    for at in ("2024-11-03 01:30", "2024-03-10 02:30"):  # one comes twice, and one never
        frame = pd.DataFrame({"at": [pd.Timestamp(at)]})
        with pytest.raises(SchemaError, match=f"in column 'at', {at}:00 comes twice, or never"):
            records_of(frame, _schema("at timestamp"))
        [row] = records_of(frame, _schema("at timestamp_ntz"))
        assert row == {"at": datetime.fromisoformat(at)}


def _schema(text: str) -> StructType:
    """Read a schema without a session."""
    from pyspark.sql.types import DoubleType, TimestampNTZType, TimestampType

    types = {
        "double": DoubleType(),
        "timestamp": TimestampType(),
        "timestamp_ntz": TimestampNTZType(),
    }
    name, kind = text.split()
    return StructType([StructField(name, types[kind])])


# --- states and outputs ---------------------------------------------------------------------------


class Store:
    """A store without a state for the key."""

    getOption = kept = None  # noqa: N815 - Spark calls it so
    exists = False

    def update(self, kept: Any) -> None:
        self.kept = kept


def applied(keyed: KeyedState) -> tuple[Any, Any]:
    """Send one row; return what is kept, and the first value that comes out."""
    store: Any = Store()
    frames = [pd.DataFrame({"n": [1]})]
    [given] = keyed.apply_in_pandas_with_state(("ann",), iter(frames), store)
    return store.kept, given.iloc[0, 0]


def test_an_hour_that_comes_twice_keeps_its_instant(new_york: None) -> None:
    second = datetime(2024, 11, 3, 1, 30, fold=1)  # as Spark's own rows have it
    keyed = keyed_state(
        lambda state, row: ((second,), [(second,)]),
        state=_schema("at timestamp"),
        schema=_schema("at timestamp"),
    )
    (kept,), out = applied(keyed)
    assert kept == out == datetime(2024, 11, 3, 6, 30, tzinfo=UTC)
    micros = keyed.state.toInternal((kept,))[0]
    assert micros == 1_730_615_400_000_000


@pytest.mark.parametrize(
    ("state", "output", "says"),
    [
        ("much", 1.0, "a state does not fit column 'x', which is double"),
        (1.0, "much", "an output does not fit column 'x', which is double"),
        (1.0, NAN, "an output has NaN in column 'x', which pandas cannot distinguish from null"),
    ],
)
def test_a_value_that_would_become_null_is_refused(state: Any, output: Any, says: str) -> None:
    double = _schema("x double")
    keyed = keyed_state(lambda old, row: ((state,), [(output,)]), state=double, schema=double)
    with pytest.raises(SchemaError, match=says):
        applied(keyed)


def test_an_integer_in_a_column_of_floats_is_a_float() -> None:
    double = _schema("x double")
    keyed = keyed_state(lambda old, row: ((1,), [(2,)]), state=double, schema=double)
    assert repr(applied(keyed)) == "((1.0,), 2.0)"


def test_a_time_with_a_zone_becomes_a_clock_time_without_one() -> None:
    ntz = _schema("at timestamp_ntz")
    at = datetime(2024, 1, 1, tzinfo=ZoneInfo("Europe/Paris"))
    keyed = keyed_state(lambda old, row: ((None,), [(at,)]), state=ntz, schema=ntz)
    with pytest.raises(SchemaError, match=r"column 'at', .* has a zone, but the column has none"):
        applied(keyed)


# --- in queries -----------------------------------------------------------------------------------

COLUMNS = (
    "user string, n long, text string, at timestamp, clock timestamp_ntz, day date, flag boolean, "
    "price decimal(10,2), numbers array<long>, inner struct<a: long, b: string>"
)
KEPT = COLUMNS.removeprefix("user string, ").split(", numbers")[0]  # Spark keeps no arrays by apply
NAMES = ("n", "text", "at", "clock", "day", "flag", "price")
FULL = (  # `at` comes in the hour that comes twice in New York
    '{"user": "ann", "n": 9007199254740993, "text": "a", "at": "2024-11-03T06:30:00Z", '
    '"clock": "2024-03-10T02:30:00", "day": "2024-07-01", "flag": true, "price": 1.10, '
    '"numbers": [9007199254740993, 1], "inner": {"a": 9007199254740993, "b": "b"}}\n'
)
BARE = '{"user": "ann"}\n'


class Latest:
    """Puts out what came before, and the times of the state and the row as texts."""

    def __init__(self) -> None:
        for name in NAMES:
            setattr(self, name, None)

    def receive(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        before = {name: getattr(self, name) for name in NAMES}
        for name in NAMES:
            setattr(self, name, row[name])
        return [{**row, **before, "text": f"{before['text']} {before['at']!s} {row['at']!s}"}]


def run(spark: SparkSession, folder: Path, change: Callable[[Any], Any], *files: str) -> list[Row]:
    """Run a query for each file, from where the last ended; return all that comes out."""
    found: list[Row] = []
    (folder / "in").mkdir(parents=True)
    for number, lines in enumerate(files):
        (folder / "in" / f"{number}.json").write_text(lines)
        stream = spark.readStream.schema(COLUMNS).json(str(folder / "in"))
        query = (
            change(stream)
            .writeStream.option("checkpointLocation", str(folder / "checkpoint"))
            .foreachBatch(lambda frame, batch: found.extend(frame.collect()))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    return found


def test_apply_and_processor_give_equal_values(in_new_york: SparkSession, tmp_path: Path) -> None:
    spark = in_new_york
    spark.conf.set("spark.sql.session.timeZone", "Europe/Paris")
    try:
        keyed = keyed_state(Latest, state=KEPT, schema=COLUMNS, rows=COLUMNS)

        def by_apply(stream: Any) -> Any:
            return stream.groupBy("user").applyInPandasWithState(
                keyed.apply_in_pandas_with_state, keyed.schema, keyed.state, "append", "NoTimeout"
            )

        files = (FULL, BARE, FULL)
        found = run(spark, tmp_path / "apply", by_apply, *files)
        wanted = spark.read.schema(COLUMNS).json(str(tmp_path / "apply" / "in" / "0.json"))
        [full] = [row.asDict() for row in wanted.collect()]
        bare = {**dict.fromkeys(full), "user": "ann"}
        nested = {name: full[name] for name in ("numbers", "inner")}
        none = dict.fromkeys(nested)
        at = "2024-11-03 07:30:00+01:00"  # in Paris
        assert [row.asDict() for row in found] == [
            bare | nested | {"text": f"None None {at}"},
            full | none | {"text": f"a {at} None"},
            bare | nested | {"text": f"None None {at}"},
        ]
        if not hasattr(spark.range(1).groupBy(), "transformWithState"):
            return  # before PySpark 4.1 processors take pandas only
        pytest.importorskip("google.protobuf", reason="Spark's stateful processors need it")
        store = "spark.sql.streaming.stateStore.providerClass"
        rocks = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        spark.conf.set(store, rocks)

        def by_processor(stream: Any) -> Any:
            return stream.groupBy("user").transformWithState(
                keyed.processor, keyed.schema, "Append", "None"
            )

        try:
            assert run(spark, tmp_path / "processor", by_processor, *files) == found
        finally:
            spark.conf.unset(store)

        unsaid = keyed_state(Latest, state=KEPT, schema=COLUMNS)

        def without_rows(stream: Any) -> Any:
            return stream.groupBy("user").applyInPandasWithState(
                unsaid.apply_in_pandas_with_state, COLUMNS, KEPT, "append", "NoTimeout"
            )

        with pytest.raises(Exception, match=r"in column 'at', 2024-11-03 07:30:00 is of a"):
            run(spark, tmp_path / "unsaid", without_rows, FULL)
    finally:
        spark.conf.unset("spark.sql.session.timeZone")
