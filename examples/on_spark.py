"""The demo's Spark side: read the changes, ship them by partitions, collect the records.

One author's changes must meet in one place and in time order, but Spark splits its input where
it likes. So it is partitioned by author, and sorted by time within each partition.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from pyspark.sql import DataFrame, SparkSession

import arrow_changes
import sessions
from answers import Answers
from callboard.spark import map_in_arrow, session
from progress import Progress

SCHEMA = "ts long, author int, repo string, commit int, path string, added int, deleted int"


@contextmanager
def running_spark(cores: int) -> Generator[SparkSession]:
    """Give the running Spark session, or one for the time of the block."""
    running = SparkSession.getActiveSession()
    spark = running or session(f"local[{cores}]", "callboard demo")
    try:
        yield spark
    finally:
        if running is None:
            spark.stop()


def track_on_spark(spark: SparkSession, path: Path, partitions: int) -> Answers:
    """Track the changes of a file in the actor systems of Spark's Python workers."""
    for module in (sessions, arrow_changes):  # the workers import the actors from them
        spark.sparkContext.addPyFile(str(module.__file__))
    function = map_in_arrow(arrow_changes.build, flush=True, schema=arrow_changes.RECORDS)
    records = by_author(spark, path, partitions).mapInArrow(function, arrow_changes.RECORDS)
    answers = Answers()
    with task_progress(spark, partitions):
        answers.add(arrow_changes.records_of(records.toArrow()))
    return answers


def by_author(spark: SparkSession, path: Path, partitions: int) -> DataFrame:
    """Return the changes of a file with each author's in one partition, in the order of time."""
    changes = spark.read.csv(
        str(path), SCHEMA, header=True, enforceSchema=False, mode="FAILFAST", escape='"'
    )
    return changes.repartition(partitions, "author").sortWithinPartitions("ts", "commit")


@contextmanager
def task_progress(spark: SparkSession, partitions: int) -> Generator[None]:
    """Show, from a thread, how many of Spark's tasks are done while the block runs."""
    tracker = spark.sparkContext.statusTracker()
    stages: set[int] = set()
    finished = Event()

    def watch() -> None:
        with Progress("tasks") as progress:
            while not finished.wait(0.1):
                stages.update(tracker.getActiveStageIds())
                known = [info for stage in stages if (info := tracker.getStageInfo(stage))]
                done = sum(info.numCompletedTasks for info in known)
                # The stage that runs the actors is not known before the input is read.
                progress.update(done, max(sum(info.numTasks for info in known), partitions + 1))

    watcher = Thread(target=watch, name="progress")
    watcher.start()
    try:
        yield
    finally:
        finished.set()
        watcher.join()
