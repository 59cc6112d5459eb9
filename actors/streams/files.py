"""Files as sinks."""

from __future__ import annotations

import dataclasses
import json
from os import PathLike
from typing import Any

from callboard.streams._sinks import Call


def to_file(name: str, path: str | PathLike[str], **options: Any) -> Call:
    """Make the program that writes rows to a file. Opens the file, which close() closes."""
    file = open(path, "w", encoding="utf-8")  # noqa: SIM115

    return Call(name, lambda row: file.write(f"{line_of(row)}\n"), file.close, **options)


def line_of(row: Any) -> str:
    """Write a row as a line."""
    return row if isinstance(row, str) else json.dumps(row, default=_plain)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    raise TypeError(f"{value!r} is neither a string nor can it be written as JSON")
