"""Tables and frames are refused where single rows are meant, and taken where their rows are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from callboard import Actor, ActorSystem
from callboard.rows.batches import rows_in
from callboard.streams import GraphError, RunError, StreamError, batches, entry

pa = pytest.importorskip("pyarrow")

COLUMNS = {"a": [1, 2], "b": ["x", None]}
ROWS = [{"a": 1, "b": "x"}, {"a": 2, "b": None}]
rows = entry("rows")


def of_pandas() -> Any:
    return pytest.importorskip("pandas").DataFrame(COLUMNS)


def of_nullable_pandas() -> Any:
    return of_pandas().astype({"b": "string"})


def of_pandas_with_objects() -> Any:
    return of_pandas().astype({"b": "object"})


def of_pandas_with_categories() -> Any:
    return of_pandas().astype({"b": "category"})


def of_polars() -> Any:
    return pytest.importorskip("polars").DataFrame(COLUMNS)


def of_duckdb() -> Any:
    duckdb = pytest.importorskip("duckdb")
    return duckdb.sql("SELECT * FROM (VALUES (1, 'x'), (2, NULL)) AS t(a, b) ORDER BY a")


def of_lazy_polars() -> Any:
    return of_polars().lazy()


def of_arrow() -> Any:
    return pa.table(COLUMNS)


def of_numpy() -> Any:
    numpy = pytest.importorskip("numpy")
    return numpy.rec.array([(1, 2.5), (2, 4.5)], dtype=[("a", "i8"), ("b", "f8")])


TABLES = [
    of_pandas,
    of_nullable_pandas,
    of_pandas_with_objects,
    of_pandas_with_categories,
    of_polars,
    of_arrow,
]
tables = pytest.mark.parametrize("table", TABLES)


@tables
def test_a_table_is_its_rows_wherever_rows_are_wanted(table: Callable[[], Any]) -> None:
    some = table()
    with ActorSystem() as system:
        run = system.run(rows.collect(), batch_size=1)
        run.send("rows", some)
        assert run.finish(timeout=60) == ROWS
        assert [*system.run(rows.collect()).results(some)] == ROWS
        assert [*system.run(rows.collect()).results({"rows": some})] == ROWS
    assert rows.collect().run_sequentially({"rows": some}, batch_size=1) == ROWS
    assert rows.collect().run_sequentially({"rows": some[:0]}) == []


def test_a_lazy_table_is_refused_as_rows() -> None:
    some = of_lazy_polars()
    said = r"expects an iterable of rows, got one LazyFrame: .*, as by \.collect\(\)\.iter_rows"
    with ActorSystem() as system:
        run = system.run(rows.collect())
        with pytest.raises(TypeError, match=r"send\(\) " + said):
            run.send("rows", some)
        assert run.finish(timeout=60) == []
    with pytest.raises(TypeError, match=r"run_sequentially\(\) " + said):
        rows.collect().run_sequentially({"rows": some})


@tables
def test_a_table_is_refused_as_inputs(table: Callable[[], Any]) -> None:
    some = table()
    graph = rows.union(entry("more")).collect()
    with pytest.raises(GraphError, match="inputs must be rows by their entries, got"):
        graph.run_sequentially(some)
    with ActorSystem() as system:
        run = system.run(graph)
        with pytest.raises(RunError, match=r"results\(\) expects rows by their entries, got"):
            run.results(some)
        run.cancel()


@pytest.mark.parametrize("table", [*TABLES, of_duckdb])
def test_a_table_is_refused_as_messages(table: Callable[[], Any]) -> None:
    class Silent(Actor[Any]):
        def receive(self, message: Any) -> None:
            raise AssertionError

    with ActorSystem() as system:
        ref = system.spawn(Silent)
        with pytest.raises(
            TypeError, match=r"tell_many\(\) expects an iterable of messages, got one .*, as by \."
        ):
            ref.tell_many(table())


BATCHED = [
    *TABLES,
    of_duckdb,
    lambda: pa.record_batch(COLUMNS),
    lambda: pa.table(COLUMNS).to_reader(),
]


@pytest.mark.parametrize("table", BATCHED)
def test_a_table_is_batches_of_its_rows(table: Callable[[], Any]) -> None:
    for n, sizes in ((1, [1, 1]), (8_192, [2])):
        found = rows.collect().run_sequentially({"rows": batches(table(), n)})
        assert [len(batch) for batch in found] == sizes
        assert all(isinstance(batch, pa.RecordBatch) for batch in found)
        assert [row for batch in found for row in batch.to_pylist()] == ROWS


def test_an_array_of_records_is_its_records_or_batches_of_them() -> None:
    some = of_numpy()
    named = rows.map(lambda row: (row["a"], row.b)).collect()
    assert named.run_sequentially({"rows": some}) == [(1, 2.5), (2, 4.5)]
    (batch,) = batches(some)
    assert batch.to_pylist() == [{"a": 1, "b": 2.5}, {"a": 2, "b": 4.5}]


def test_other_objects_have_no_batches() -> None:
    for wrong in (ROWS, [], "text", pytest.importorskip("numpy").zeros(3)):
        with pytest.raises(TypeError, match=r"batches\(\) expects a table or a frame, got"):
            batches(wrong)
    with pytest.raises(ValueError, match="n must be a whole number"):
        batches(of_arrow(), 0)


def test_a_batch_is_one_row_and_a_reader_has_batches() -> None:
    batch = pa.record_batch(COLUMNS)
    assert rows.collect().run_sequentially({"rows": batch}) == [batch]
    reader = pa.RecordBatchReader.from_batches(batch.schema, [batch, batch])
    assert rows.collect().run_sequentially({"rows": reader}) == [batch, batch]


def test_the_rows_of_a_structured_array_are_rows() -> None:
    numpy = pytest.importorskip("numpy")
    some = numpy.array([(1, 2.5), (3, 4.5)], dtype=[("a", "i8"), ("b", "f8")])
    found = rows.map(lambda row: row["b"]).collect().run_sequentially({"rows": some})
    assert found == [2.5, 4.5]
    assert rows.unbatch().collect().run_sequentially({"rows": [some]}) == [(1, 2.5), (3, 4.5)]


@pytest.mark.parametrize(
    "table",
    [
        *TABLES,
        lambda: pa.record_batch(COLUMNS),
        lambda: pa.table(COLUMNS).to_reader(),
        lambda: ROWS,
        lambda: iter(ROWS),
    ],
)
def test_rows_are_those_of_any_table(table: Callable[[], Any]) -> None:
    assert rows.unbatch().collect().run_sequentially({"rows": [table()]}) == ROWS


def twins_of_pandas() -> Any:
    return pytest.importorskip("pandas").DataFrame([[1, 2], [3, 4]], columns=["a", "a"])


def twins_of_arrow() -> Any:
    return pa.table([[1, 3], [2, 4]], names=["a", "a"])


@pytest.mark.parametrize("table", [twins_of_pandas, twins_of_arrow])
def test_two_columns_of_one_name_are_an_error_at_the_call(table: Callable[[], Any]) -> None:
    said = r"^2 columns of the (DataFrame|Table) have the name 'a', and a row has one value"
    with ActorSystem() as system:
        run = system.run(rows.collect())
        with pytest.raises(ValueError, match=said):
            run.send("rows", table())
        assert run.finish(timeout=60) == []
        with pytest.raises(ValueError, match=said):
            [*system.run(rows.collect()).results(table())]
    with pytest.raises(ValueError, match=said):
        rows.collect().run_sequentially({"rows": table()})
    with pytest.raises(ValueError, match=said):
        batches(table())


@pytest.mark.parametrize(
    "table", [twins_of_pandas, twins_of_arrow, lambda: twins_of_arrow().to_reader()]
)
def test_a_row_in_which_two_columns_have_one_name_is_an_error(table: Callable[[], Any]) -> None:
    with pytest.raises(StreamError, match="failed at input 0") as info:
        rows.unbatch().collect().run_sequentially({"rows": [table()]})
    assert "have the name 'a'" in str(info.value.__cause__)


@pytest.mark.parametrize("some", ["ab", b"ab", {"a": [1]}, 5, None])
def test_a_value_without_rows_is_an_error_of_its_row(some: Any) -> None:
    with pytest.raises(StreamError, match="failed at input 0") as info:
        rows.unbatch().collect().run_sequentially({"rows": [some]})
    assert isinstance(info.value.__cause__, TypeError)
    assert str(info.value.__cause__).startswith("unbatch() expects ")


def test_a_relation_of_duckdb_is_its_rows() -> None:
    with ActorSystem() as system:
        run = system.run(rows.collect(), batch_size=1)
        run.send("rows", of_duckdb())
        assert run.finish(timeout=60) == ROWS
        assert [*system.run(rows.collect()).results(of_duckdb())] == ROWS
    assert rows.collect().run_sequentially({"rows": of_duckdb()}) == ROWS


def test_a_missing_text_of_pandas_becomes_none_and_a_missing_number_nan() -> None:
    pandas = pytest.importorskip("pandas")
    nan = float("nan")
    frame = pandas.DataFrame(
        {
            "objects": pandas.Series(["a", nan, None, "b"], dtype="object"),
            "categories": pandas.Series(["a", nan, None, "a"], dtype="category"),
            "numbers": pandas.Series([1, nan, 2, nan], dtype="category"),
        }
    )
    found = [*(rows_in(frame, 3) or ())]
    assert [row["objects"] for row in found] == ["a", None, None, "b"]
    assert [row["categories"] for row in found] == ["a", None, None, "a"]
    assert [row["numbers"] != row["numbers"] for row in found] == [False, True, False, True]
