"""Records as JSON lines."""

import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.nets.errors import RecordError
from callboard.nets.json_lines import read_json_lines, write_json_lines

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
records = st.fixed_dictionaries(
    {}, optional={"x": values, "größe": values, "<n>": st.integers(), "<#b>": st.integers()}
)


@given(st.lists(records, max_size=4))
def test_records_are_read_as_they_were_written(written: list[dict[str, Any]]) -> None:
    file = io.StringIO()
    assert write_json_lines(written, file) == len(written)
    assert list(read_json_lines(io.StringIO(file.getvalue()))) == written


def test_a_path_is_opened(tmp_path: Path) -> None:
    records = [{"x": "ä", "<p>": 3}, {}]
    path = tmp_path / "records.jsonl"
    write_json_lines(iter(records), path)
    assert path.read_text() == '{"x": "\\u00e4", "<p>": 3}\n{}\n'
    assert list(read_json_lines(path)) == list(read_json_lines(str(path))) == records


def test_lines_may_be_bytes_and_blank() -> None:
    assert list(read_json_lines([b'{"x": "\xc3\xa4"}\n', b"\n", b"  "])) == [{"x": "ä"}]


def test_lines_are_read_one_by_one() -> None:
    lines = iter(['{"x": 1}', '{"x": 2}'])
    assert next(read_json_lines(lines)) == {"x": 1}
    assert list(lines) == ['{"x": 2}']


def test_a_truth_value_of_a_tag_becomes_a_number() -> None:
    (record,) = read_json_lines(['{"<t>": true, "x": true}'])
    assert record["<t>"] == 1
    assert type(record["<t>"]) is int
    assert record["x"] is True


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", ", column 2: this is not JSON: Expecting property name"),
        ("{} {}", ", column 4: this is not JSON: Extra data"),
        (b"\xff", ": .*can't decode"),
        ("[1]", ": expected a mapping from labels to values, got \\[1\\]"),
        ('{"x y": 1}', ": expected a label such as a, <t> or <#b>, got 'x y'"),
        ('{"<x": 1}', ": expected a label such as a, <t> or <#b>, got '<x'"),
        ('{"": 1}', ": expected a label such as a, <t> or <#b>, got ''"),
        ('{"<t>": 1.0}', ": the tag <t> expects an integer, got 1.0"),
        ('{"<t>": null}', ": the tag <t> expects an integer, got None"),
        ('{"x": 1, "y": 2, "x": 3}', ": a key occurs twice among x, y, x"),
        ("[" * 100_000, ": maximum recursion depth"),
    ],
)
def test_a_line_without_a_record_is_an_error(line: str | bytes, reason: str) -> None:
    lines: list[Any] = ['{"x": 1}', line]
    reader = read_json_lines(lines)
    next(reader)
    with pytest.raises(RecordError, match=f"line 2{reason}"):
        next(reader)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"x": object()}, "record 2 has a value that JSON cannot represent"),
        ({"x": {1j: 2}}, "record 2 has a value that JSON cannot represent"),
        ({"x": float("nan")}, r"record 2 has .* a JSON value, got {'x': nan}"),
        ({"x": [float("-inf")]}, r"record 2 has .* a JSON value, got {'x': \[-inf\]}"),
        ({"x": {1: 2, "1": 3}}, "record 2 has .* a key occurs twice among 1, 1"),
        ({1: 2}, "record 2: expected a label"),
        ({"<t>": "1"}, "record 2: the tag <t> expects an integer, got '1'"),
        (3, "record 2: expected a mapping"),
    ],
)
def test_a_record_that_cannot_be_written_is_named(record: Any, reason: str) -> None:
    file = io.StringIO()
    with pytest.raises(RecordError, match=reason):
        write_json_lines([{"x": 1}, record], file)
    assert file.getvalue() == '{"x": 1}\n'
