"""Parses traces in the text format."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from callboard import ActorSystem
from callboard.observing import dump_trace

DISPATCH = re.compile(
    r"(?P<time>\d+) (?P<worker>\S+) tid (?P<task>\d+) (?P<path>\S+) disp (?P<dispatch>\d+)"
    r" st (?P<state>Z|R|B[ioa]) et (?P<spent>\d+)(?: creat (?P<created>\d+))?"
    r"(?: msgs (?P<messages>\d+)(?: queue (?P<queue>\d+))?)?(?: \[(?P<uses>.+)\])?"
)
USE = re.compile(r"(\d+),([rw]),([OICR]),(\d+),([?-][!-][*-])")
WAIT = re.compile(r"(\d+) \*\*\* (\S+) waited \((\d+)\) for (\d+\.\d{9})")


class Use(NamedTuple):
    """What a dispatch did with an end of a channel."""

    channel: int
    mode: str
    state: str
    moved: int
    flags: str


class Dispatch(NamedTuple):
    """A line of a trace."""

    time: int
    worker: str
    task: int
    path: str
    dispatch: int
    state: str
    spent: int
    created: int | None
    messages: int
    queue: int | None
    uses: tuple[Use, ...]


def parse(line: str) -> Dispatch:
    """Return the parts of a dispatch's line. Raises AssertionError for any other."""
    match = DISPATCH.fullmatch(line)
    assert match, line
    return Dispatch(
        time=int(match["time"]),
        worker=match["worker"],
        task=int(match["task"]),
        path=match["path"],
        dispatch=int(match["dispatch"]),
        state=match["state"],
        spent=int(match["spent"]),
        created=None if match["created"] is None else int(match["created"]),
        messages=int(match["messages"] or 0),
        queue=None if match["queue"] is None else int(match["queue"]),
        uses=tuple(map(_use, (match["uses"] or "").split(";")[:-1])),
    )


def _use(text: str) -> Use:
    match = USE.fullmatch(text)
    assert match, text
    return Use(int(match[1]), match[2], match[3], int(match[4]), match[5])


def dispatches(lines: Iterable[str]) -> list[Dispatch]:
    """Return the dispatches of a trace, without the workers' own lines."""
    return [parse(line) for line in lines if " *** " not in line]


def read(file: Path) -> list[Dispatch]:
    """Return the dispatches of a file."""
    return dispatches(file.read_text().splitlines())


def recorded(system: ActorSystem) -> list[str]:
    """Return the lines that a system's flight recorder has."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "run.txt")
        dump_trace(system, file)
        return file.read_text().splitlines()
