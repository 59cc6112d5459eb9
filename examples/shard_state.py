"""The demo's answers as state of served actors: sessions by author, and counts by file.

`python -m callboard serve shard_state:build --state DIR` serves them, with `--shard` as one of
several servers; `on_shards.py` starts them, and sends the changes.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from callboard import ActorSystem
from callboard.remote import PersistentActor
from sessions import Change, Session, Sessions

CHANGE = list(Change._fields)


class AuthorState(PersistentActor):
    """The sessions of some of the authors, from all their changes in time order."""

    snapshot_every = 4

    def __init__(self) -> None:
        self._sessions = Sessions()
        self._ended: list[Session] = []

    def apply(self, row: Any) -> None:
        columns = [row.column(name).to_pylist() for name in CHANGE]
        self._ended += self._sessions.add(Change(*values) for values in zip(*columns, strict=True))

    def answer(self, query: Any) -> Any:
        return self._ended + self._sessions.open

    def snapshot(self) -> Any:
        return [self._ended, self._sessions.open]

    def restore(self, state: Any) -> None:
        self._ended, open_sessions = state
        self._sessions = Sessions(open_sessions=open_sessions)


class FileState(PersistentActor):
    """How often some of the files changed."""

    snapshot_every = 4

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()

    def apply(self, row: Any) -> None:
        names = (row.column(name).to_pylist() for name in ("repo", "path"))
        self._counts.update(zip(*names, strict=True))

    def answer(self, query: Any) -> Any:
        return [(*file, count) for file, count in self._counts.items()]

    def snapshot(self) -> Any:
        return dict(self._counts)

    def restore(self, state: Any) -> None:
        self._counts = Counter(state)


TYPES = [Session]


def build(system: ActorSystem) -> dict[str, Any]:
    return {"authors": system.spawn(AuthorState), "files": system.spawn(FileState)}
