"""Find what is hot in a stream of file changes with 500 counters, and count exactly to compare.

`python examples/hot_now.py FILE` reads another file than the sample, such as a whole stream.

Prints:

    files: 11714 in 42445 changes, 500 counted
       381 to   381, exactly   381: trio/test-requirements.txt
       244 to   245, exactly   244: ponyc/CHANGELOG.md
       198 to   203, exactly   198: ponyc/.release-notes/next-release.md
       164 to   200, exactly   164: greenlet/src/greenlet/greenlet.cpp
       138 to   179, exactly   138: msgspec/msgspec/_core.c
    authors: 803 in 42445 changes, 500 counted
      6107 to  6109, exactly  6107: 2406
      4966 to  4966, exactly  4966: 1037
      3692 to  3692, exactly  3692: 1373
      3219 to  3219, exactly  3219: 1322
      1276 to  1276, exactly  1276: 1396
"""

import sys
from collections import Counter
from pathlib import Path

from callboard.frequency import SpaceSaving
from changes import read_changes

SAMPLE = Path(__file__).with_name("data") / "changes-sample.csv.gz"
EPSILON = 1 / 500


def compare(name: str, hot: SpaceSaving, exact: Counter[object]) -> None:
    """Show the five hottest keys, and hold the summary to what it promises."""
    print(f"{name}: {len(exact)} in {hot.total} changes, {len(hot)} counted")
    for key, count, error in hot.top(5):
        print(f"{count - error:6} to {count:5}, exactly {exact[key]:5}: {key}")
    bound = EPSILON * hot.total
    assert all(hot.estimate(key).count >= times for key, times in exact.items() if times > bound)
    assert all(0 <= count - exact[key] <= error <= bound for key, count, error in hot)


if __name__ == "__main__":
    files, authors = SpaceSaving(EPSILON), SpaceSaving(EPSILON)
    all_files: Counter[object] = Counter()
    all_authors: Counter[object] = Counter()
    with open(sys.argv[1] if len(sys.argv) > 1 else SAMPLE, "rb") as file:
        for change in read_changes(file):
            path = f"{change.repo}/{change.path}"
            files.add(path)
            authors.add(change.author)
            all_files[path] += 1
            all_authors[change.author] += 1
    compare("files", files, all_files)
    compare("authors", authors, all_authors)
