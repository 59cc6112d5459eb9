"""Records as JSON, one a line: `{"x": 1, "<p>": 3}`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from callboard.core.text import json_text, unique_keys
from callboard.nets.errors import RecordError
from callboard.nets.formats.labelled import Source, Target, checked, lines_of, opened
from callboard.nets.terms.labels import Record


def read_json_lines(source: Source) -> Iterator[Record]:
    """Yield the records of a file, of which the path is given, or of lines. Blank ones are skipped.

    A line that is no record raises RecordError with its number.
    """
    for number, line in enumerate(lines_of(source), 1):
        place = f"line {number}"
        try:
            text = line if isinstance(line, str) else line.decode()
            if not text.strip():
                continue
            record = json.loads(text, object_pairs_hook=unique_keys)
        except json.JSONDecodeError as error:
            reason = f"{place}, column {error.colno}: this is no JSON: {error.msg}"
            raise RecordError(reason) from None
        except (ValueError, RecursionError) as error:
            raise RecordError(f"{place}: {error}") from None
        yield checked(record, place)


def write_json_lines(records: Iterable[Mapping[str, Any]], target: Target) -> int:
    """Write records to a path or an open file, and return how many there were."""
    number = 0
    with opened(target) as file:
        for number, record in enumerate(records, 1):
            place = f"record {number}"
            try:
                text = json_text(checked(record, place))
            except (TypeError, ValueError, RecursionError) as error:
                raise RecordError(f"{place} has a value that JSON cannot have: {error}") from None
            file.write(text + "\n")
    return number
