"""The cost of the demo in Spark, compared with an identity over the same plan.

    python tests/bench/spark_demo.py [--rounds 7] [--partitions 4] [--cold] [FILE]

Both read the file of changes, partition it by author and sort each partition by time; then the demo
tracks sessions and files in actors and collects its records, and the identity's `mapInArrow` passes
the batches on to be counted. The rounds alternate, with the order reversed in every other one, and
each round's results are checked: the demo's against those of an actor system without Spark.

Warm, all rounds are of one session, after one of each that does not count. With --cold every job is
the first of a session in a new process, whose start is not counted.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from operator import truediv
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from callboard.spark import session

if TYPE_CHECKING:
    from answers import Answers

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "examples"))  # for the demo's modules, which are imported when needed

WHOLE = ROOT.parent / "shared" / "data" / "changes.csv.gz"
SAMPLE = ROOT / "examples" / "data" / "changes-sample.csv.gz"
MOST = 1.5  # times the identity

Found = tuple[float, object]


def summary(answers: Answers) -> object:
    """Return all that the answers hold, in an order of its own."""
    sessions = sorted(
        (s.author, s.start, s.end, s.commits, s.changes, s.lines) for s in answers.sessions
    )
    return sessions, sorted(answers.files.items())


def identity(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def demo(spark: SparkSession, file: Path, partitions: int) -> Found:
    from on_spark import track_on_spark

    begin = perf_counter()
    answers = track_on_spark(spark, file, partitions)
    seconds = perf_counter() - begin
    return seconds, summary(answers)


def pass_on(spark: SparkSession, file: Path, partitions: int) -> Found:
    from on_spark import SCHEMA, by_author

    begin = perf_counter()
    passed = by_author(spark, file, partitions).mapInArrow(identity, SCHEMA)
    row = passed.agg(f.count("*"), f.sum(f.col("added") + f.col("deleted"))).first()
    return perf_counter() - begin, tuple(row or ())


JOBS: dict[str, Callable[[SparkSession, Path, int], Found]] = {"demo": demo, "identity": pass_on}


def warm(file: Path, partitions: int, rounds: int) -> Iterator[dict[str, Found]]:
    spark = session("local[2]", "spark_demo")
    for job in JOBS.values():
        job(spark, file, partitions)
    for number in range(rounds):
        names = list(JOBS) if number % 2 else list(reversed(JOBS))
        yield {name: JOBS[name](spark, file, partitions) for name in names}
    spark.stop()


def cold(file: Path, partitions: int, rounds: int) -> Iterator[dict[str, Found]]:
    for number in range(rounds):
        names = list(JOBS) if number % 2 else list(reversed(JOBS))
        yield {name: in_a_process(name, file, partitions) for name in names}


def in_a_process(name: str, file: Path, partitions: int) -> Found:
    command = [sys.executable, __file__, str(file), "--partitions", str(partitions), "--one", name]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    seconds, found = json.loads(printed)
    return seconds, plain(found)


def plain(found: Any) -> Any:
    """Return the same with tuples for JSON's lists, as they were."""
    return tuple(map(plain, found)) if isinstance(found, (list, tuple)) else found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", nargs="?", type=Path, default=WHOLE if WHOLE.exists() else SAMPLE)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--one", choices=list(JOBS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        spark = session("local[2]", "spark_demo")
        print(json.dumps(JOBS[options.one](spark, options.file, options.partitions)))
        return

    from demo import track

    answers = track(options.file, workers=1)
    lines = sum(session.lines for session in answers.sessions)
    right = {"demo": plain(summary(answers)), "identity": (answers.changes, lines)}
    seconds: dict[str, list[float]] = {name: [] for name in JOBS}
    played = cold if options.cold else warm
    for each in played(options.file, options.partitions, options.rounds):
        for name, (took, found) in each.items():
            if plain(found) != right[name]:
                raise SystemExit(f"{name}: the results are not those of the run without Spark")
            seconds[name].append(took)
    for name, all_ in seconds.items():
        print(f"{name:10}{statistics.median(all_):6.2f} s, {min(all_):.2f} to {max(all_):.2f}")
    ratio = statistics.median(map(truediv, seconds["demo"], seconds["identity"]))
    met = "met" if ratio <= MOST else "missed"
    print(f"{'ratio':10}{ratio:6.2f}   the median of {options.rounds}; at most {MOST}: {met}")


if __name__ == "__main__":
    main()
