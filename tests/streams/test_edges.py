"""Where rows come from and go to: kinds of rows, functions, actors, files, Arrow and NumPy."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from callboard.streams import StreamError, Watermark, entry

rows = entry("rows")


@dataclass(frozen=True)
class Click:
    user: str
    page: int


def test_rows_may_be_of_any_kind_and_come_through_as_they_are() -> None:
    kinds = [1, "a", None, (1, 2), {"a": 1}, Click("ann", 1), [1], b"", object()]
    graph = rows.map(lambda row: row).filter(lambda row: True).collect()
    outputs = graph.run_sequentially({"rows": kinds})
    assert all(out is row for out, row in zip(outputs, kinds, strict=True))


def test_rows_may_come_from_a_generator_and_of_it_only_a_batch_is_held() -> None:
    taken: list[int] = []
    most = 0

    def clicks() -> Any:
        for n in range(10):
            taken.append(n)
            yield n

    def note(n: int) -> None:
        nonlocal most
        most = max(most, len(taken) - n)

    rows.to(note).run_sequentially({"rows": clicks()}, batch_size=3)
    assert most == 3


def test_watermarks_do_not_leave_the_graph() -> None:
    seen: list[Any] = []
    marked = [1, Watermark(1), 2]
    assert rows.collect().run_sequentially({"rows": marked}) == [1, 2]
    rows.to(seen.append).run_sequentially({"rows": marked})
    assert seen == [1, 2]


def test_a_file_has_a_line_for_each_row(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    lines = ["plain", {"a": 1}, (1, 2), Click("ann", 3), Watermark(1), 5]
    graph = rows.to(path)
    assert not path.exists()
    graph.run_sequentially({"rows": lines})
    text = path.read_text().splitlines()
    assert text[0] == "plain"
    assert [json.loads(line) for line in text[1:]] == [
        {"a": 1}, [1, 2], {"user": "ann", "page": 3}, 5,
    ]  # fmt: skip
    graph.run_sequentially({"rows": ["again"]})
    assert path.read_text() == "again\n"


def test_a_function_on_arrays_sees_each_as_one_row() -> None:
    arrays = [np.arange(3), np.arange(5)]
    doubled = rows.map_batches(lambda array: array * 2)
    found = doubled.unbatch().collect().run_sequentially({"rows": arrays})
    assert found == [0, 2, 4, 0, 2, 4, 6, 8]
    assert doubled._outlet.operator.make("double").releases_gil


def test_rows_become_arrow_batches_and_batches_rows() -> None:
    pa = pytest.importorskip("pyarrow")
    people = [{"name": "ann", "age": 3}, {"name": "bob", "age": 5}, {"name": "cid", "age": 7}]
    batches = rows.to_arrow(2).collect().run_sequentially({"rows": people})
    assert [batch.num_rows for batch in batches] == [2, 1]
    assert batches[0].schema.names == ["name", "age"]
    assert rows.unbatch().collect().run_sequentially({"rows": batches}) == people
    clicks = [Click("ann", 1)]
    (batch,) = rows.to_arrow(9).collect().run_sequentially({"rows": clicks})
    assert batch.to_pylist() == [{"user": "ann", "page": 1}]
    schema = pa.schema([("user", pa.string()), ("page", pa.int16())])
    (batch,) = rows.to_arrow(9, schema).collect().run_sequentially({"rows": [("ann", 1)]})
    assert batch.schema == schema
    assert batch.to_pylist() == [{"user": "ann", "page": 1}]


def test_a_row_that_cannot_be_written_is_an_error_and_the_file_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    with pytest.raises(StreamError, match="operator 'write' failed at input 1") as caught:
        rows.to(str(path)).run_sequentially({"rows": ["a", object()]})
    assert "neither a string" in str(caught.value.__cause__)
    assert path.read_text() == "a\n"
