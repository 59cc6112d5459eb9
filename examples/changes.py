"""Read a file of changes, csv or csv.gz, as a stream."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from typing import BinaryIO

from sessions import Change


def read_changes(file: BinaryIO) -> Iterator[Change]:
    """Yield the changes of an open file in its order; a name that ends in .gz is unzipped.

    ValueError names the file, the line and what is wrong with it.
    """
    data = gzip.GzipFile(fileobj=file) if file.name.endswith(".gz") else file
    rows = csv.reader((line.decode() for line in data), strict=True)
    try:
        nothing: list[str] = []
        header = next(rows, nothing)
        if tuple(header) != Change._fields:
            raise ValueError(f"the columns are {header}, not {list(Change._fields)}")
        for ts, author, repo, commit, path, added, deleted in rows:
            yield Change(int(ts), int(author), repo, int(commit), path, int(added), int(deleted))
    except (ValueError, EOFError, gzip.BadGzipFile, csv.Error) as error:
        raise ValueError(f"{file.name}, line {rows.line_num}: {error}") from error
