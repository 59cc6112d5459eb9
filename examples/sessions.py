"""Sessions of work and hot files: the plain logic of the demo, and the actors around it.

An author's session of work is a run of commits without a pause of 60 minutes. A file is hot
when it changes often. Both are counted from one stream of file changes in time order.

    batches of changes --> ChangeStream --> AuthorSessions (several; one author, one actor)
                                        --> FileCounts     (several; one file, one actor)

Each batch is answered with the records that it completes, and the end of the stream with the
rest. `demo.py` sends the batches, from a partition in a Spark task or from a file.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Generic, NamedTuple, TypeVar

from callboard import Actor, ActorRef, ActorSystem
from callboard.spark import PartitionContext, PartitionEnd

M = TypeVar("M", contravariant=True)
R = TypeVar("R", covariant=True)

PAUSE = 60 * 60
"""The pause, in seconds, that ends a session."""


class Change(NamedTuple):
    """One file changed by one commit: a line of the input, in the input's column order."""

    ts: int
    author: int
    repo: str
    commit: int
    path: str
    added: int
    deleted: int


@dataclass(slots=True)
class Session:
    """One author's run of commits without a pause; `start` and `end` are UTC seconds."""

    author: int
    start: int
    end: int
    commits: int = 0
    changes: int = 0
    lines: int = 0
    last_commit: int = field(default=-1, repr=False, compare=False)

    @property
    def seconds(self) -> int:
        return self.end - self.start


class FileCount(NamedTuple):
    """How often one file changed."""

    repo: str
    path: str
    changes: int


Record = Session | FileCount


class Sessions:
    """Track the open session of every author seen."""

    def __init__(self, pause: int = PAUSE, open_sessions: Iterable[Session] = ()) -> None:
        self._pause = pause
        self._open = {session.author: session for session in open_sessions}

    @property
    def open(self) -> list[Session]:
        """The sessions that no pause has ended yet."""
        return list(self._open.values())

    def add(self, changes: Iterable[Change]) -> list[Session]:
        """Count changes in and return the sessions that a pause has ended.

        Each author's changes must come in time order: ValueError names one that does not.
        """
        ended: list[Session] = []
        for ts, author, _, commit, _, added, deleted in changes:
            session = self._open.get(author)
            if session is not None and ts < session.end:
                raise ValueError(
                    f"not in time order: author {author}'s commit {commit} is of {ts}, "
                    f"after one of {session.end}"
                )
            if session is None or ts - session.end >= self._pause:
                if session is not None:
                    ended.append(session)
                session = self._open[author] = Session(author, ts, ts)
            session.end = ts
            if commit != session.last_commit:  # a commit's changes come together
                session.last_commit = commit
                session.commits += 1
            session.changes += 1
            session.lines += added + deleted
        return ended

    def end_all(self) -> list[Session]:
        """End and return the sessions that are still open."""
        ended = self.open
        self._open.clear()
        return ended


Shard = ActorRef[list[Change] | PartitionEnd]


class AuthorSessions(Actor[list[Change] | PartitionEnd]):
    """Track the sessions of some of the authors; answer each message with those that ended."""

    def __init__(self) -> None:
        self._sessions = Sessions()

    def receive(self, message: list[Change] | PartitionEnd) -> list[Session]:
        if isinstance(message, PartitionEnd):
            return self._sessions.end_all()
        return self._sessions.add(message)


_REPO_AND_PATH = itemgetter(2, 4)  # of a change: faster than by their names


class FileCounts(Actor[list[Change] | PartitionEnd]):
    """Count the changes of some of the files; answer the end with the counts."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()

    def receive(self, message: list[Change] | PartitionEnd) -> list[FileCount]:
        if isinstance(message, PartitionEnd):
            return [FileCount(repo, path, count) for (repo, path), count in self._counts.items()]
        self._counts.update(map(_REPO_AND_PATH, message))
        return []


class Tracker(Actor[M, R], Generic[M, R]):
    """Split each batch by author and by file, and answer with the records that it completes.

    One author, and one file, always goes to the same actor, which keeps the state of it. Messages
    from one actor to another keep their order, so each author's changes stay in time order. When
    one of the actors fails, so does this one: its answers would not be whole.
    """

    def __init__(self, shards: int) -> None:
        self._shards = shards

    def on_start(self) -> None:
        self._authors = [self.spawn(AuthorSessions) for _ in range(self._shards)]
        self._files = [self.spawn(FileCounts) for _ in range(self._shards)]

    async def complete(self, message: list[Change] | PartitionEnd) -> list[Record]:
        if isinstance(message, PartitionEnd):
            asked = [actor.ask(message) for actor in self._authors + self._files]
        else:
            asked = [actor.ask(changes) for actor, changes in self._split(message).items()]
        return [record for answer in asked for record in await answer]

    def _split(self, batch: list[Change]) -> dict[Shard, list[Change]]:
        """Return what each actor must know of a batch."""
        if self._shards == 1:
            return {self._authors[0]: batch, self._files[0]: batch}
        parts: defaultdict[Shard, list[Change]] = defaultdict(list)
        for change in batch:
            parts[self._authors[change[1] % self._shards]].append(change)
            parts[self._files[hash((change[2], change[4])) % self._shards]].append(change)
        return parts


class ChangeStream(Tracker[list[Change] | PartitionEnd, list[Record]]):
    """Takes changes as lists."""

    async def receive(self, message: list[Change] | PartitionEnd) -> list[Record]:
        return await self.complete(message)


def build(system: ActorSystem, context: PartitionContext) -> Shard:
    """Spawn the actors for one partition, and return their entry point."""
    return system.spawn(ChangeStream, shards=context.cpus)
