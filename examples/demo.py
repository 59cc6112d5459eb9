"""Find sessions of work and hot files in a stream of file changes, and print them.

By default Spark reads the file and ships it, partition by partition, to an actor system in each
of its Python workers; with --no-spark one actor system in this process does it all. Both run
the actors of `sessions.py`.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import deque
from itertools import islice
from pathlib import Path

from answers import Answers
from callboard import ActorSystem, Future
from callboard.spark import PartitionContext, PartitionEnd
from changes import read_changes
from progress import Progress
from sessions import Record, build

SAMPLE = Path(__file__).with_name("data") / "changes-sample.csv.gz"
BATCH_SIZE = 4096
IN_FLIGHT = 4
"""The most batches that wait for the actors, which bounds the memory they take."""


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    try:
        check(options.file)
        if options.spark:
            # Imported here, so that the rest runs without PySpark.
            from on_spark import running_spark, track_on_spark

            print("starting Spark", file=sys.stderr)
            with running_spark(options.workers) as spark:
                start = time.perf_counter()
                partitions = options.partitions or 2 * options.workers
                answers = track_on_spark(spark, options.file, partitions)
                seconds = time.perf_counter() - start
        else:
            start = time.perf_counter()
            answers = track(options.file, options.workers)
            seconds = time.perf_counter() - start
    except ImportError as error:
        return fail(f"{error}; pip install 'callboard[spark]', or use --no-spark")
    except (OSError, ValueError) as error:
        return fail(error)
    print(answers.render(options.top))
    print(f"\n{seconds:.1f} s, {answers.changes / seconds:,.0f} changes/s")
    return 0


def fail(reason: object) -> int:
    print(f"demo: {reason}", file=sys.stderr)
    return 2


def check(path: Path) -> None:
    """Raise OSError or ValueError unless the file looks like changes, before Spark is started."""
    with path.open("rb") as file:
        next(read_changes(file), None)


def track(path: Path, workers: int) -> Answers:
    """Read a file in this thread, and track its changes in an actor system."""
    answers = Answers()
    whole = PartitionContext(cpus=workers)
    size = path.stat().st_size
    asked: deque[Future[list[Record]]] = deque()
    with (
        path.open("rb") as file,
        Progress("reading") as progress,
        ActorSystem("demo", workers=workers) as system,
    ):
        stream = build(system, whole)
        changes = read_changes(file)
        while batch := list(islice(changes, BATCH_SIZE)):
            if len(asked) == IN_FLIGHT:
                answers.add(asked.popleft().result())
            asked.append(stream.ask(batch))
            progress.update(file.tell(), size)
        asked.append(stream.ask(PartitionEnd(whole)))
        for answer in asked:
            answers.add(answer.result())
    return answers


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n\n", maxsplit=1)[0])
    parser.add_argument(
        "file", nargs="?", type=Path, default=SAMPLE, help="a .csv or .csv.gz (default: the sample)"
    )
    parser.add_argument(
        "--no-spark", dest="spark", action="store_false", help="use this process alone"
    )
    parser.add_argument(
        "--workers",
        type=at_least_one,
        default=os.cpu_count() or 1,
        help="the actor system's workers, or Spark's cores (default: this machine's cores)",
    )
    parser.add_argument(
        "--partitions", type=at_least_one, help="Spark's partitions (default: two per worker)"
    )
    parser.add_argument(
        "--top", type=at_least_one, default=5, help="lines of each table (default: 5)"
    )
    return parser.parse_args(arguments)


def at_least_one(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


if __name__ == "__main__":
    sys.exit(main())
