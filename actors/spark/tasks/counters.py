"""Counters of tasks, which the driver reads while a job runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from callboard.core.checks import whole
from callboard.core.errors import ConfigError
from callboard.core.handles import public_names
from callboard.core.text import safe_repr
from callboard.observing.progress_line import ProgressLine

if TYPE_CHECKING:
    from callboard import ActorSystem

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EntryCounts:
    """The work of an entry in the ended tasks. Two of them can be added."""

    runs: int = 0
    """Partitions, or groups, that were read to their end."""
    rows_in: int = 0
    rows_out: int = 0
    dead_letters: int = 0
    restarts: int = 0  # of actors
    busy: float = 0.0
    """Processor seconds of the tasks' Python processes."""

    def __add__(self, other: EntryCounts) -> EntryCounts:
        return EntryCounts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def __str__(self) -> str:
        return (
            f"{self.runs:,} runs, {self.rows_in:,} rows in, {self.rows_out:,} rows out, "
            f"{self.dead_letters:,} dead letters, {self.restarts:,} restarts, {self.busy:.1f} s"
        )


class TaskCounters:
    """Counts the work of tasks on the driver, where it is created. Pass it as `counters=`.

    The counts are in a Spark accumulator. They arrive when a task has succeeded. In an action, such
    as `foreachPartition`, Spark counts each partition once. In a transformation, such as
    `mapInArrow`, it counts again whenever it runs the partition again: for another action, for lost
    shuffle output, or as a speculative copy. So the counts are for people, and no commit may depend
    on them.

    Args:
        spark: A session, or its context.

    Raises ConfigError without a context, which Spark Connect does not have.
    """

    __dir__ = public_names

    def __init__(self, spark: Any) -> None:
        from pyspark.accumulators import AccumulatorParam

        class Merged(AccumulatorParam[dict[str, EntryCounts]]):
            def zero(self, value: dict[str, EntryCounts]) -> dict[str, EntryCounts]:
                return {}

            def addInPlace(  # noqa: N802
                self, one: dict[str, EntryCounts], other: dict[str, EntryCounts]
            ) -> dict[str, EntryCounts]:
                return _merged(one, other)

        self._accumulator = _context_of(spark).accumulator({}, Merged())

    @property
    def counts(self) -> dict[str, EntryCounts]:
        """The counts so far, by the name of the entry or of the build function. On the driver."""
        return dict(self._accumulator.value)

    @property
    def total(self) -> EntryCounts:
        """The sum of the counts of all entries. On the driver."""
        return sum(self.counts.values(), EntryCounts())

    def progress(
        self, total: int | None = None, *, every: float = 0.5, file: TextIO | None = None
    ) -> ProgressLine:
        """Show a job's progress on stderr, within a `with` block, on a separate thread.

        `total` is the expected number of input rows. The line is updated when tasks end.
        """
        return CountersLine(lambda: self.total, total, every, file)

    @contextmanager
    def _counting(self, name: str) -> Iterator[Counting]:
        """Count for an entry, in a task, and report to the driver if it succeeds."""
        counting = Counting()
        yield counting
        self._accumulator.add({name: counting.counts()})

    def __repr__(self) -> str:
        entries = [f"{name}: {counts}" for name, counts in self.counts.items()]
        return f"<TaskCounters {'; '.join(entries) or 'of no ended task'}>"


class Counting:
    """The counts of one run, in a task."""

    def __init__(self) -> None:
        self.rows_in = 0
        self.rows_out = 0
        self._letters: Any = None
        self._before = (0, 0)
        self._begun = time.process_time()

    def watch(self, system: ActorSystem) -> None:
        """Count a system's dead letters and restarts from now on."""
        self._letters = system.dead_letters
        self._before = self._letters.count, self._letters.restart_count

    def reading(self, inputs: Iterable[T], *, in_lists: bool = False) -> Iterator[T]:
        """Count the rows that go in: rows, record batches, or, with `in_lists`, lists of rows."""
        for value in inputs:
            is_list = in_lists and isinstance(value, list)
            self.rows_in += len(value) if is_list else _rows_of(value)  # type: ignore[arg-type]
            yield value

    def giving(self, outputs: Iterable[T]) -> Iterator[T]:
        """Count the rows that come out: rows, or record batches of them."""
        for value in outputs:
            self.rows_out += _rows_of(value)
            yield value

    def counts(self) -> EntryCounts:
        """Return the counts."""
        letters, restarts = self._before
        if self._letters is not None:
            letters = self._letters.count - letters
            restarts = self._letters.restart_count - restarts
        busy = time.process_time() - self._begun
        return EntryCounts(1, self.rows_in, self.rows_out, letters, restarts, busy)


class CountersLine(ProgressLine):
    """The line of `TaskCounters.progress()`."""

    def __init__(
        self,
        look: Callable[[], EntryCounts],
        total: int | None,
        every: float,
        file: TextIO | None,
    ) -> None:
        super().__init__(every, file)
        self._look = look
        self._total = None if total is None else whole("total", total, 0)

    def _line(self, seconds: float) -> str:
        counts = self._look()
        part = f"{min(counts.rows_in / self._total, 1.0):4.0%}  " if self._total else ""
        return f"{part}{counts}"


@contextmanager
def counted(counters: TaskCounters | None, name: str) -> Iterator[Counting | None]:
    """Count for an entry if there are counters."""
    if counters is None:
        yield None
        return
    with counters._counting(name) as counting:
        yield counting


def check_counters(counters: Any) -> TaskCounters | None:
    """Check the option `counters`. Raises ConfigError."""
    if counters is not None and not isinstance(counters, TaskCounters):
        raise ConfigError(f"counters expects TaskCounters or None, got {safe_repr(counters)}")
    return counters


def _context_of(spark: Any) -> Any:
    try:
        return spark if hasattr(spark, "accumulator") else spark.sparkContext
    except Exception as error:  # Connect's session raises its own
        raise ConfigError(
            "TaskCounters expects a SparkContext, or a session that has one (Spark Connect's have "
            f"none), got {safe_repr(spark)}"
        ) from error


def _merged(one: dict[str, EntryCounts], other: dict[str, EntryCounts]) -> dict[str, EntryCounts]:
    merged = dict(one)
    for name, counts in other.items():
        merged[name] = merged.get(name, EntryCounts()) + counts
    return merged


def _rows_of(value: Any) -> int:
    arrow = sys.modules.get("pyarrow")  # which is imported where there are batches of it
    if arrow is not None and isinstance(value, (arrow.RecordBatch, arrow.Table)):
        return int(value.num_rows)
    return 1
