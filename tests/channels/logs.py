"""The logs of monitored systems, read back."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

DISPATCH = re.compile(
    r"(?P<time>\d+) tid (?P<task>\d+) (?P<path>/\S+) disp (?P<dispatch>\d+)"
    r" st (?P<state>Z|R|B[ioa]) et (?P<spent>\d+)(?: creat (?P<created>\d+))?"
    r"(?: msgs (?P<messages>\d+)(?: queue (?P<queue>\d+))?)?(?: \[(?P<uses>.+)\])?"
)
USE = re.compile(r"(\d+),([rw]),([OICR]),(\d+),([?-][!-][*-])")


class Use(NamedTuple):
    """What a dispatch did with an end of a channel."""

    channel: int
    mode: str
    state: str
    moved: int
    flags: str


class Dispatch(NamedTuple):
    """A line of a log."""

    time: int
    task: int
    path: str
    dispatch: int
    state: str
    spent: int
    created: int | None
    messages: int
    uses: tuple[Use, ...]


def parse(line: str) -> Dispatch:
    """Return the parts of a dispatch's line. Raises AssertionError for any other."""
    match = DISPATCH.fullmatch(line)
    assert match, line
    return Dispatch(
        time=int(match["time"]),
        task=int(match["task"]),
        path=match["path"],
        dispatch=int(match["dispatch"]),
        state=match["state"],
        spent=int(match["spent"]),
        created=None if match["created"] is None else int(match["created"]),
        messages=int(match["messages"] or 0),
        uses=tuple(map(_use, (match["uses"] or "").split(";")[:-1])),
    )


def _use(text: str) -> Use:
    match = USE.fullmatch(text)
    assert match, text
    return Use(int(match[1]), match[2], match[3], int(match[4]), match[5])


def dispatches(lines: Iterable[str]) -> list[Dispatch]:
    """Return the dispatches of a log, without the worker's own lines."""
    return [parse(line) for line in lines if " *** " not in line]


def read(folder: Path) -> dict[str, list[Dispatch]]:
    """Return the dispatches of each file."""
    return {
        file.name: dispatches(file.read_text().splitlines()) for file in sorted(folder.iterdir())
    }
