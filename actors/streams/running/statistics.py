"""Statistics of a run, and its progress bar."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from callboard.core import checks
from callboard.core.markup import paragraph, table
from callboard.frequency.results import Counted
from callboard.observing.progress_line import ProgressLine
from callboard.scheduling.flow.threading_models import Model
from callboard.streams.planning.plan import PlannedOperator
from callboard.streams.programs.joins.join_in_lanes import LanePrograms
from callboard.streams.programs.program import Program
from callboard.streams.running.build import OperatorPlace
from callboard.streams.running.flow import GraphFlow
from callboard.streams.running.row_counts import RowCounts


@dataclass(frozen=True)
class PartitionStatistics:
    """A partition of keys, until now. `busy` is in seconds, estimated from one of 64 rounds."""

    rows: int
    busy: float


@dataclass(frozen=True)
class OperatorStatistics:
    """An operator, until now. `cost` (of a row) and `busy` are in seconds; `queued` is an estimate.

    `threading` is its threading model. `thread` is the name of the thread, or of the worker that is
    its home; it is empty for a `dynamic` operator, which any worker runs. In a system with worker
    processes, `reason` says why an operator stays in the program, or why `processes="auto"` has
    chosen its place.

    For `manual` operators, and native operators in a row that are run as one, `cost` and `busy` are
    estimated from one of 64 rounds. For the latter, `workers` are at work on all of them, and
    waiting rows are `queued` at the first.
    """

    name: str
    rows_in: int
    rows_out: int
    queued: float
    workers: int
    cost: float
    selectivity: float
    busy: float
    threading: Model = "dynamic"
    thread: str = ""
    reason: str = ""
    lanes: tuple[int, ...] = ()
    """For a join with lanes, the pairs of rows that each has compared, until the run ends."""
    partitions: tuple[PartitionStatistics, ...] = ()
    """For a keyed operator that workers share."""
    hot_keys: tuple[Counted, ...] = ()
    """For a keyed operator of a run with `hot_keys`, those that came most often, the most frequent
    first: each came at most `count` times, and at least `count - error`."""
    watermark_lag: float | None = None
    """How far the operator's watermark is behind the newest event time that the run has seen, in
    the unit of event times, in seconds for datetimes. None: it has no watermark, or its time is no
    number."""

    @property
    def busiest(self) -> float:
        """The largest share of rows that one partition had, or of pairs one lane: 0.0 to 1.0.

        At most `1 / busiest` workers are of use here. It is 0.0 where neither is known.
        """
        parts = [partition.rows for partition in self.partitions] or self.lanes
        return max(parts) / total if (total := sum(parts)) else 0.0


@dataclass(frozen=True)
class Latency:
    """Latencies of the middle markers that were measured, in seconds.

    As in Prasaad et al. 2018, section 7: of those from the 20th to the 80th percentile of the
    stream, so that neither start nor end counts.
    """

    markers: int
    mean: float
    median: float
    p95: float
    p99: float
    longest: float
    histogram: tuple[tuple[float, int], ...]
    """(upper bound, count) by powers of two of a microsecond."""


# The latest rounds: those that ended within this time, and at most this many.
RECENT_NS = 10_000_000_000
MOST_RECENT = 256
# How many operators the text of statistics has, and how much of a name.
MOST_LINES = 40
MOST_OF_NAME = 32


@dataclass(frozen=True, repr=False)
class RunStatistics:
    """A run, until now: `seconds` since it began, and `throughput` in rows sent per second.

    Watermarks are no rows, here and in operators. The text is a line, and a table of operators.
    """

    rows: int
    rounds: int
    rounds_done: int
    skipped: int
    late: int
    unpaired: int
    """Rows that a zip had no partners for."""
    seconds: float
    throughput: float
    processing: Latency | None
    """From the first operator's beginning with a round to its end; None without markers."""
    end_to_end: Latency | None
    """From a round's arrival to its end."""
    operators: tuple[OperatorStatistics, ...]

    def __repr__(self) -> str:
        more = len(self.operators) - MOST_LINES
        return "\n".join(
            [
                self._counts(),
                *_table(self.operators[:MOST_LINES]),
                *([f"... and {more} more operators"] if more > 0 else []),
            ]
        )

    def _repr_html_(self) -> str:
        """Return the text as a table, for notebooks."""
        header, *rows = _cells(self.operators)
        return paragraph(self._counts()) + table(header, rows, texts=[0])

    def _counts(self) -> str:
        parts = [
            f"{self.rows:,} rows in {self.seconds:.3f} s",
            f"{self.throughput:,.0f} rows/s",
            f"{self.rounds_done:,} of {self.rounds:,} rounds done",
        ]
        for name in ("skipped", "late", "unpaired"):
            if count := getattr(self, name):
                parts.append(f"{count:,} {name}")
        if self.end_to_end is not None:
            parts.append(f"latency {self.end_to_end.median * 1e3:.3f} ms")
        return ", ".join(parts)


def _cells(operators: Sequence[OperatorStatistics]) -> list[tuple[str, ...]]:
    """Return what stands in a table of operators, its header first."""
    names = ("operator", "rows in", "rows out", "queued", "workers", "us a row", "busy s")
    has_time = any(one.watermark_lag is not None for one in operators)
    rows: list[tuple[str, ...]] = [(*names, "event lag") if has_time else names]
    for one in operators:
        figures = f"{one.rows_in:,}", f"{one.rows_out:,}", f"{one.queued:,.0f}", f"{one.workers}"
        lag = "-" if one.watermark_lag is None else f"{one.watermark_lag:,g}"
        times = f"{one.cost * 1e6:,.3f}", f"{one.busy:,.3f}", *([lag] if has_time else [])
        rows.append((one.name, *figures, *times))
    return rows


def _table(operators: Sequence[OperatorStatistics]) -> Iterator[str]:
    """Yield a table's lines: names to the left, figures to the right."""
    rows = [
        (name if len(name) <= MOST_OF_NAME else f"{name[: MOST_OF_NAME - 3]}...", *figures)
        for name, *figures in _cells(operators)
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *cells in rows:
        right = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        yield "  ".join([name.ljust(widths[0]), *right])


def collect(
    flow: GraphFlow,
    row_counts: RowCounts,
    rows: int,
    seconds: float,
    places: Sequence[OperatorPlace],
    programs: Sequence[Program],
) -> RunStatistics:
    """Read a flow's counters. Any thread."""
    times = sorted(flow.times())
    middle = times[len(times) // 5 : max(len(times) * 4 // 5, len(times) // 5 + 1)]
    begun = [one for one in middle if one[2]]
    operators = flow.operators()
    lags = lags_of(flow)
    skipped, late, unpaired = row_counts._totals()
    last = dict(operators)  # of an operator with several programs, the one that works
    return RunStatistics(
        rows=rows,
        rounds=flow.admitted,
        rounds_done=flow.done,
        skipped=skipped,
        late=late,
        unpaired=unpaired,
        seconds=seconds,
        throughput=rows / seconds if seconds else 0.0,
        processing=latency([(left - first) / 1e9 for _, _, first, left in begun]),
        end_to_end=latency([(left - arrived) / 1e9 for _, arrived, _, left in middle]),
        operators=tuple(
            OperatorStatistics(
                name=operator.name,
                rows_in=operator.taken,
                rows_out=operator.given,
                queued=operator.queued,
                workers=operator.workers,
                cost=operator.cost,
                selectivity=operator.selectivity,
                busy=operator.busy,
                threading=places[number].model,
                thread=places[number].where,
                reason=places[number].reason,
                lanes=programs[number].work_of_lanes() if last[number] is operator else (),
                partitions=_partitions(flow, number, programs) if last[number] is operator else (),
                hot_keys=programs[number].hot_keys() if last[number] is operator else (),
                watermark_lag=lags.get(number),
            )
            for number, operator in operators
        ),
    )


def describe(operators: Sequence[PlannedOperator], places: Sequence[OperatorPlace]) -> str:
    """Write a line for each operator: its name, its kind, its place, and the reason for that."""
    lines = []
    for operator, place in zip(operators, places, strict=True):
        kind = ", ".join(filter(None, (operator.kind, operator.detail)))
        where = place.where or ("any worker" if place.model == "dynamic" else place.model)
        why = f": {place.reason}" if place.reason else ""
        lines.append((operator.name, f"{kind}, {where}{why}"))
    width = max(len(name) for name, _ in lines)
    return "".join(f"{name:{width}}  {text}\n" for name, text in lines)


def figures_of(
    flow: GraphFlow, row_counts: RowCounts, run: str, seconds: float, entries: list[int]
) -> dict[str, Any]:
    """Read the counters of a run, its entries and its operators, for JSON. Any thread."""
    skipped, late, unpaired = row_counts._totals()
    lags = lags_of(flow)
    times = recent_latency(flow)
    operators = [
        {
            "name": view.name,
            "number": number,
            "rows_in": view.taken,
            "rows_out": view.given,
            "queued": view.queued,
            "workers": view.workers,
            "cost": view.cost,
            "busy": view.busy,
            "watermark_lag": lags.get(number),
        }
        for number, view in flow.operators()
    ]
    return {
        "run": run,
        "seconds": seconds,
        "rows": flow.rows,
        "skipped": skipped,
        "late": late,
        "unpaired": unpaired,
        "latency": None if times is None else {"p50": times.median, "p99": times.p99},
        "operators": operators,
        "entries": entries,
    }


def _partitions(
    flow: GraphFlow, number: int, programs: Sequence[Program]
) -> tuple[PartitionStatistics, ...]:
    if isinstance(programs[number], LanePrograms):  # each lane has all rows
        return ()
    return tuple(PartitionStatistics(rows, busy) for rows, busy in flow.partitions(number))


def lags_of(flow: GraphFlow) -> dict[int, float]:
    """Return how far the watermark of each operator that has one is behind. Any thread."""
    newest, watermarks = flow.event_times()
    return {
        number: max(newest - mark, 0.0)
        for number, mark in watermarks.items()
        if mark is not None and newest is not None
    }


def recent_latency(flow: GraphFlow) -> Latency | None:
    """Summarise the time from arrival to end of measured rounds that ended just now. Any thread."""
    since = time.monotonic_ns() - RECENT_NS
    ended = (one for one in flow.latest_times(MOST_RECENT) if one[3] >= since)
    return latency([(left - arrived) / 1e9 for _, arrived, _, left in ended])


def latency(seconds: Sequence[float]) -> Latency | None:
    """Summarise latencies; None of none."""
    if not seconds:
        return None
    ordered = sorted(seconds)
    last = len(ordered) - 1
    counts: dict[float, int] = {}
    for one in ordered:
        bound = 1e-6
        while bound < one:
            bound *= 2
        counts[bound] = counts.get(bound, 0) + 1
    return Latency(
        markers=len(ordered),
        mean=sum(ordered) / len(ordered),
        median=ordered[last // 2],
        p95=ordered[last * 95 // 100],
        p99=ordered[last * 99 // 100],
        longest=ordered[-1],
        histogram=tuple(sorted(counts.items())),
    )


_WIDTH = 20  # of the bar


class Progress(ProgressLine):
    """Shows the progress of a run, from entering to leaving the context, on a separate thread.

    On a terminal, and in a notebook, it is one line, redrawn `every` seconds; elsewhere a new line
    every 10 seconds. It has the rows done, of `total` if that is known, and rows a second since the
    last look. For each operator it shows about how many rows wait for it.
    """

    def __init__(
        self,
        look: Callable[[], RunStatistics],
        total: int | None = None,
        *,
        every: float = 0.5,
        file: TextIO | None = None,
    ) -> None:
        super().__init__(every, file)
        self._look = look
        self._total = None if total is None else checks.whole("total", total, 0)
        self._rows = 0

    def _line(self, seconds: float) -> str:
        statistics = self._look()
        # An estimate of how many of the rows that were sent have left the graph.
        done = statistics.rows * statistics.rounds_done // max(1, statistics.rounds)
        rate, self._rows = (done - self._rows) / seconds, done
        return progress_line(statistics, done, self._total, rate)


def progress_line(statistics: RunStatistics, done: int, total: int | None, rate: float) -> str:
    """Say in one line how a run gets on."""
    bar = ""
    if total:
        part = min(done / total, 1.0)
        filled = round(part * _WIDTH)
        bar = f"{'█' * filled}{'░' * (_WIDTH - filled)} {part:4.0%}  "
    waiting = [
        f"{operator.name} {operator.queued:,.0f}"
        for operator in statistics.operators
        if operator.queued >= 1
    ]
    lag = f"  waiting: {', '.join(waiting)}" if waiting else ""
    return f"{bar}{done:,} rows  {rate:,.0f} rows/s{lag}"
