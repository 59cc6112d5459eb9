"""Join a stream of file changes with itself: who worked on a folder within an hour of another?

`python examples/side_by_side.py FILE` reads another file than the sample, such as a whole stream.

Prints:

    1579 pairs of commits in 42445 changes, in the folders
      224 pekko/akka-persistence-typed/src/main/scala/akka/persistence/typed/internal
      215 ponyc/.release-notes
      194 pekko/akka-docs/src/main/paradox/typed
      112 pekko/akka-persistence-typed-tests/src/test/scala/akka/persistence/typed
      108 ponyc/
"""

import sys
from collections import Counter, deque
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from callboard import ActorSystem
from callboard.streams import Equal, entry
from changes import Change, read_changes

SAMPLE = Path(__file__).with_name("data") / "changes-sample.csv.gz"
HOUR = 3600


class Visit(NamedTuple):
    """A commit that changes something in a folder."""

    ts: int
    folder: str
    author: int
    commit: int


def visit_of(change: Change) -> Visit:
    folder = f"{change.repo}/{change.path.rpartition('/')[0]}"
    return Visit(change.ts, folder, change.author, change.commit)


def by_two(left: Visit, right: Visit) -> tuple[str, int, int] | None:
    """Name a pair of authors once, not once for each side."""
    return (left.folder, left.author, right.author) if left.author < right.author else None


visits = entry("changes", Change).map(visit_of).distinct(lambda visit: visit[1:])
pairs = (
    visits.join(visits, by="ts", within=HOUR, where=Equal("folder"), combine=by_two)
    .filter(lambda pair: pair is not None)
    .collect()
)


def plainly(changes: Iterable[Change]) -> list[tuple[str, int, int]]:
    """Find the same pairs with a list for each folder."""
    seen: set[Visit] = set()
    latest: dict[str, deque[Visit]] = {}
    found = []
    for change in changes:
        visit = visit_of(change)
        if visit in seen:
            continue
        seen.add(visit)
        others = latest.setdefault(visit.folder, deque())
        while others and visit.ts - others[0].ts > HOUR:
            others.popleft()
        for other in others:
            if other.author != visit.author:
                found.append((visit.folder, *sorted((other.author, visit.author))))
        others.append(visit)
    return found


if __name__ == "__main__":
    with open(sys.argv[1] if len(sys.argv) > 1 else SAMPLE, "rb") as file:
        changes = list(read_changes(file))
    with ActorSystem() as system:
        run = system.run(pairs)
        run.send("changes", changes)
        together = run.finish()
    assert Counter(together) == Counter(plainly(changes))
    print(f"{len(together)} pairs of commits in {len(changes)} changes, in the folders")
    for folder, count in Counter(folder for folder, _, _ in together).most_common(5):
        print(f"{count:5} {folder}")
