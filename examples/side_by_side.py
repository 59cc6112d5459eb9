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
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from callboard import ActorSystem
from callboard.streams import Equal, entry
from changes import read_changes
from sessions import Change

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


visits = entry("changes", Change).map(visit_of).distinct()
pairs = (
    visits.join(visits, by="ts", within=HOUR, where=Equal("folder"))
    .filter(lambda pair: pair[0].author < pair[1].author)  # once for the two of them
    .collect()
)

if __name__ == "__main__":
    with open(sys.argv[1] if len(sys.argv) > 1 else SAMPLE, "rb") as file:
        changes = list(read_changes(file))
    with ActorSystem() as system:
        run = system.run(pairs)
        run.send("changes", changes)
        together = run.finish()
    print(f"{len(together)} pairs of commits in {len(changes)} changes, in the folders")
    for folder, count in Counter(left.folder for left, _ in together).most_common(5):
        print(f"{count:5} {folder}")
