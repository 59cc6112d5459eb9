"""Records as JSON, one per line: `{"x": 1, "<p>": 3}`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, TypeAlias

from callboard.core.text import json_text, unique_keys
from callboard.nets.errors import RecordError
from callboard.nets.terms.labels import Record, is_tag

# A path, or lines: an open file, a list of strings, or a pipe.
Source: TypeAlias = str | os.PathLike[str] | Iterable[str] | Iterable[bytes]
Target: TypeAlias = str | os.PathLike[str] | TextIO

_LABEL = re.compile(r"[^\W\d]\w*|<#?[^\W\d]\w*>")


def read_json_lines(source: Source) -> Iterator[Record]:
    """Yield the records of a file, by its path, or of lines. Blank lines are skipped.

    A line that is not a record raises RecordError with its number.
    """
    for number, line in enumerate(_lines_of(source), 1):
        place = f"line {number}"
        try:
            text = line if isinstance(line, str) else line.decode()
            if not text.strip():
                continue
            record = json.loads(text, object_pairs_hook=unique_keys)
        except json.JSONDecodeError as error:
            reason = f"{place}, column {error.colno}: this is not JSON: {error.msg}"
            raise RecordError(reason) from None
        except (ValueError, RecursionError) as error:
            raise RecordError(f"{place}: {error}") from None
        yield _checked(record, place)


def write_json_lines(records: Iterable[Mapping[str, Any]], target: Target) -> int:
    """Write records to a path or an open file, and return their number."""
    number = 0
    with _opened(target) as file:
        for number, record in enumerate(records, 1):
            place = f"record {number}"
            try:
                text = json_text(_checked(record, place))
            except (TypeError, ValueError, RecursionError) as error:
                raise RecordError(
                    f"{place} has a value that JSON cannot represent: {error}"
                ) from None
            file.write(text + "\n")
    return number


def _checked(record: Mapping[str, Any], place: str) -> Record:
    """Return a record, after a check of its labels and tags. `place` is for errors."""
    if not isinstance(record, Mapping):
        raise RecordError(f"{place}: expected a mapping from labels to values, got {record!r}")
    found: Record = {}
    for label, value in record.items():
        if not (isinstance(label, str) and _LABEL.fullmatch(label)):
            raise RecordError(f"{place}: expected a label such as a, <t> or <#b>, got {label!r}")
        if not is_tag(label):
            found[label] = value
        elif isinstance(value, int):
            found[label] = int(value)
        else:
            raise RecordError(f"{place}: the tag {label} expects an integer, got {value!r}")
    return found


def _lines_of(source: Source) -> Iterator[str | bytes]:
    """Yield the lines of a source. Those of a path are bytes."""
    if isinstance(source, (str, os.PathLike)):
        with Path(source).open("rb") as file:
            yield from file
    else:
        yield from source


@contextmanager
def _opened(target: Target) -> Iterator[TextIO]:
    """Open a path for writing, or use an open file, which stays open."""
    if isinstance(target, (str, os.PathLike)):
        with Path(target).open("w", encoding="utf-8") as file:
            yield file
    else:
        yield target
