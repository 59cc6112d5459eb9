"""Tables and frames where rows are meant, and as rows whose own rows are wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from callboard import Actor, ActorSystem
from callboard.streams import GraphError, RunError, StreamError, entry

pa = pytest.importorskip("pyarrow")

COLUMNS = {"a": [1, 2], "b": ["x", None]}
ROWS = [{"a": 1, "b": "x"}, {"a": 2, "b": None}]
rows = entry("rows")


def of_pandas() -> Any:
    return pytest.importorskip("pandas").DataFrame(COLUMNS)


def of_polars() -> Any:
    return pytest.importorskip("polars").DataFrame(COLUMNS)


def of_lazy_polars() -> Any:
    return of_polars().lazy()


def of_arrow() -> Any:
    return pa.table(COLUMNS)


TABLES = [
    (of_pandas, r"not one DataFrame: .*, as by \.to_dict\('records'\)"),
    (of_polars, r"not one DataFrame: .*, as by \.iter_rows\(named=True\)"),
    (of_lazy_polars, r"not one LazyFrame: .*, as by \.collect\(\)\.iter_rows\(named=True\)"),
    (of_arrow, r"not one Table: .*, as by \.to_pylist\(\) or \.to_batches\(\)"),
]
tables = pytest.mark.parametrize(("table", "said"), TABLES)


@tables
def test_a_table_is_no_iterable_of_rows(table: Callable[[], Any], said: str) -> None:
    some = table()
    with ActorSystem() as system:
        run = system.run(rows.collect())
        with pytest.raises(TypeError, match=r"send\(\) wants an iterable of rows, " + said):
            run.send("rows", some)
        assert run.finish(timeout=60) == []
        results = system.run(rows.collect())
        with pytest.raises(TypeError, match=r"results\(\) wants an iterable of rows, " + said):
            results.results(some)
        with pytest.raises(TypeError, match=r"results\(\) wants an iterable of rows, " + said):
            results.results({"rows": some})
        results.cancel()
    with pytest.raises(TypeError, match=r"run_sequentially\(\) wants an iterable of rows, " + said):
        rows.collect().run_sequentially({"rows": some})


@tables
def test_a_table_is_no_inputs_by_their_entries(table: Callable[[], Any], said: str) -> None:
    del said
    some = table()
    graph = rows.union(entry("more")).collect()
    with pytest.raises(GraphError, match="inputs are rows by their entries, not"):
        graph.run_sequentially(some)
    with ActorSystem() as system:
        run = system.run(graph)
        with pytest.raises(RunError, match=r"results\(\) wants rows by their entries, not"):
            run.results(some)
        run.cancel()


@tables
def test_a_table_is_no_iterable_of_messages(table: Callable[[], Any], said: str) -> None:
    class Silent(Actor[Any]):
        def receive(self, message: Any) -> None:
            raise AssertionError

    with ActorSystem() as system:
        ref = system.spawn(Silent)
        with pytest.raises(
            TypeError, match=r"tell_many\(\) wants an iterable of messages, " + said
        ):
            ref.tell_many(table())


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
    assert rows.rows().collect().run_sequentially({"rows": [some]}) == [(1, 2.5), (3, 4.5)]


@pytest.mark.parametrize(
    "table",
    [
        of_pandas,
        of_polars,
        of_arrow,
        lambda: pa.record_batch(COLUMNS),
        lambda: pa.table(COLUMNS).to_reader(),
        lambda: ROWS,
        lambda: iter(ROWS),
    ],
)
def test_rows_are_those_of_any_table(table: Callable[[], Any]) -> None:
    assert rows.rows().collect().run_sequentially({"rows": [table()]}) == ROWS


@pytest.mark.parametrize("some", ["ab", b"ab", {"a": [1]}, 5, None])
def test_what_has_no_rows_is_an_error_of_its_row(some: Any) -> None:
    with pytest.raises(StreamError, match="failed at input 0") as info:
        rows.rows().collect().run_sequentially({"rows": [some]})
    assert isinstance(info.value.__cause__, TypeError)
    assert str(info.value.__cause__).startswith("rows() wants ")
