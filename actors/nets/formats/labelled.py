"""Records as dicts, and where their texts come from and go to."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, TypeAlias

from callboard.nets.errors import RecordError
from callboard.nets.terms.labels import Record, is_tag

# A path, or lines: an open file, a list of strings, what comes from a pipe.
Source: TypeAlias = str | os.PathLike[str] | Iterable[str] | Iterable[bytes]
Target: TypeAlias = str | os.PathLike[str] | TextIO

_LABEL = re.compile(r"[^\W\d]\w*|<#?[^\W\d]\w*>")


def checked(record: Mapping[str, Any], place: str) -> Record:
    """Return a record of which the keys are labels and the tags integers. `place` is for errors."""
    if not isinstance(record, Mapping):
        raise RecordError(f"{place}: a record is a mapping from labels to values, not {record!r}")
    found: Record = {}
    for label, value in record.items():
        if not (isinstance(label, str) and _LABEL.fullmatch(label)):
            raise RecordError(f"{place}: {label!r} is no label; labels are like a, <t> and <#b>")
        if not is_tag(label):
            found[label] = value
        elif isinstance(value, int):
            found[label] = int(value)
        else:
            raise RecordError(f"{place}: the tag {label} must be an integer, not {value!r}")
    return found


def lines_of(source: Source) -> Iterator[str | bytes]:
    """Yield the lines of a source. Those of a path are bytes."""
    if isinstance(source, (str, os.PathLike)):
        with Path(source).open("rb") as file:
            yield from file
    else:
        yield from source


@contextmanager
def opened(target: Target) -> Iterator[TextIO]:
    """Open a path to write to it, or take an open file and leave it open."""
    if isinstance(target, (str, os.PathLike)):
        with Path(target).open("w", encoding="utf-8") as file:
            yield file
    else:
        yield target
