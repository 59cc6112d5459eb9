"""Recordings take the records out of workers, and keep or write them.

Workers call `take()` before their records are overwritten. So a recording has all of them, and the
cost arises once for thousands of records.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple, Self

from callboard.core.errors import CallboardError
from callboard.core.handles import public_names
from callboard.core.log import log
from callboard.core.monitoring.private_files import new_file, private
from callboard.scheduling.tracing.flight_recorder import FlightRecorder
from callboard.scheduling.tracing.formats import Names, ProcessWork, TraceFormat, format_for
from callboard.scheduling.tracing.track_encoder import (
    RECORD_SIZE,
    records_written,
    take_records,
    taken_from,
)
from callboard.scheduling.worker import WorkerThread

# The records that a trace takes at a time near its end, so that as many as possible fit. The most
# bytes of a record in a file, without names.
_FEW, _LONGEST = 64, 1000
# Rounds of worker processes that a trace collects before it writes them, or keeps at most.
_MOST_WORK, _MOST_KEPT_WORK = 1000, 50_000

Workers = Callable[[], list[WorkerThread]]


class RecordReader:
    """Reads the new records of each worker. One thread at a time.

    `workers()` takes no lock, because a thread that has the team's lock may hand its records over.
    """

    def __init__(self, workers: Workers, *, from_now: bool) -> None:
        self.workers = workers
        self._next = {worker: records_written(worker) for worker in workers()} if from_now else {}

    def take(self, worker: WorkerThread) -> tuple[bytes, int]:
        """Return a worker's new records, and the number of overwritten ones."""
        records, self._next[worker], lost = take_records(worker, self._next.get(worker, 0))
        return records, lost

    def take_pairs(self, worker: WorkerThread) -> list[tuple[int, int]]:
        """Return the senders and receivers of a worker's new sampled messages, by their numbers."""
        pairs, self._next[worker] = taken_from(worker, self._next.get(worker, 0))
        return pairs

    def forget_ended(self) -> list[WorkerThread] | None:
        """Forget the workers that have ended, if they are many. Then return the others."""
        live = self.workers()
        if len(self._next) <= 2 * len(live) + 16:
            return None
        self._next = {worker: self._next.get(worker, 0) for worker in live}
        return live


class TraceFile:
    """A trace that is written to a file until its `with` block ends.

    It contains the dispatches that end during this time. `lost` counts records that were
    overwritten before they could be written. The trace ends at `limit` bytes, with a warning in the
    log.
    """

    __dir__ = public_names

    def __init__(
        self,
        path: str,
        format_name: str | None,
        limit: int,
        system: str,
        reader: RecordReader,
        names: Names,
        on_close: Callable[[TraceFile], object],
    ) -> None:
        self.path = path
        self.lost = 0
        self._format = format_for(path, format_name)(system)
        self._limit = limit
        self._names = names
        self._reader = reader
        self._on_close = on_close
        self._notes: deque[tuple[int, str]] = deque()
        self._work: deque[ProcessWork] = deque()
        self._lock = threading.RLock()  # a handler of the log may come back here
        self._pid = os.getpid()
        self._written = 0
        self._file: IO[bytes] | None = open(path, "wb", 0, opener=private)  # noqa: SIM115
        self._write(self._format.header())

    def _drain(self, worker: WorkerThread) -> None:
        """Write a worker's records. The worker calls this before its ring is full."""
        self._write_records(worker)
        if self._file is None:
            self._on_close(self)  # the trace or the disk is full: nothing more is recorded for it

    def _write_records(self, worker: WorkerThread) -> None:
        with self._lock:
            if self._file is None:
                return
            records, lost = self._reader.take(worker)
            self.lost += lost
            if lost:
                self._note(f"{worker.name} overwrote {lost} records")
            self._write_notes()
            room = self._limit - self._written
            fits = len(records) // RECORD_SIZE * _LONGEST <= room
            size = len(records) if fits and records else _FEW * RECORD_SIZE
            for at in range(0, len(records), size):
                if self._file is None:
                    break
                piece = records[at : at + size]
                self._write(self._format.records(worker, piece, self._names))
            if (left := self._reader.forget_ended()) is not None:
                self._format.forget_all_but(left)

    def _note(self, text: str) -> None:
        """Record an event of this moment. Any thread, in the middle of anything."""
        self._notes.append((time.monotonic_ns(), text))

    def _note_work(self, one: ProcessWork) -> None:
        """Record a round of a worker process. Any thread."""
        self._work.append(one)
        if len(self._work) >= _MOST_WORK:  # the program's workers may write nothing for long
            with self._lock:
                self._write_notes()

    def close(self) -> None:
        """End the trace. The file then contains all dispatches that have ended."""
        self._on_close(self)
        is_forked = os.getpid() != self._pid  # the file is the parent's
        for worker in self._reader.workers() if not is_forked else ():
            self._write_records(worker)
        with self._lock:
            if not is_forked:
                self._write_notes()
                self._write(self._format.footer(), is_end=True)
            file, self._file = self._file, None
        if file is not None:
            file.close()

    def _write_notes(self) -> None:
        while self._notes:
            self._write(self._format.instant(*self._notes.popleft()))
        while self._work:
            self._write(self._format.work(self._work.popleft()))

    def _write(self, data: bytes, *, is_end: bool = False) -> None:
        if self._file is None:
            return
        self._written += len(data)
        try:
            if self._written > self._limit and not is_end:
                log.warning("a trace is full, and ends here", file=self.path, limit=self._limit)
                data = self._format.footer()
            while data:
                data = data[self._file.write(data) :]
        except OSError as error:  # such as a full disk; reported once
            log.error("a trace could not be written; recording stops", file=self.path, error=error)
            self._limit = 0
        if self._written > self._limit and not is_end:
            self._file.close()
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "ended" if self._file is None else "being written"
        return f"<TraceFile {self.path!r}, {state}>"


class TakenRecords(NamedTuple):
    """Records of one worker that a flight recorder keeps."""

    taken_at: int
    worker: WorkerThread
    records: bytes


class LatestTrace:
    """The latest trace of a system in memory, by the options of a FlightRecorder."""

    def __init__(
        self, options: FlightRecorder, system: str, reader: RecordReader, names: Names
    ) -> None:
        self.options = options
        self._system = system
        self._names = names
        self._reader = reader
        self._kept: deque[TakenRecords] = deque()
        self._size = 0
        self._notes: deque[tuple[int, str]] = deque(maxlen=10_000)
        self._work: deque[ProcessWork] = deque(maxlen=_MOST_KEPT_WORK)
        self._lock = threading.RLock()
        self._not_before = 0.0

    def drain(self, worker: WorkerThread) -> None:
        """Keep a worker's records. The worker calls this before its ring is full."""
        with self._lock:
            now = time.monotonic_ns()
            records, lost = self._reader.take(worker)
            self._reader.forget_ended()
            if lost:
                self.note(f"{worker.name} overwrote {lost} records")
            kept = self._kept
            kept.append(TakenRecords(now, worker, records))
            self._size += len(records)
            oldest = now - int(self.options.seconds * 1e9)
            while kept and (self._size > self.options.limit or kept[0].taken_at < oldest):
                self._size -= len(kept.popleft().records)

    def note(self, text: str) -> None:
        """Record an event of this moment. Any thread, in the middle of anything."""
        self._notes.append((time.monotonic_ns(), text))

    def note_work(self, one: ProcessWork) -> None:
        """Record a round of a worker process. Any thread."""
        self._work.append(one)

    def write(self, path: str) -> None:
        """Write the trace to a file, atomically. Raises OSError."""
        with self._lock:
            for worker in self._reader.workers():
                self.drain(worker)
            kept, notes, work = list(self._kept), list(self._notes), list(self._work)
        made: TraceFormat = format_for(path, None)(self._system)
        oldest = time.monotonic_ns() - int(self.options.seconds * 1e9)
        whole = Path(f"{path}.{os.getpid()}-{threading.get_ident()}.part")
        try:
            with new_file(whole) as file:
                file.write(made.header())
                for one in kept:
                    file.write(made.records(one.worker, one.records, self._names))
                for at, text in notes:
                    if at >= oldest:
                        file.write(made.instant(at, text))
                for each in work:
                    if each.ended >= oldest:
                        file.write(made.work(each))
                file.write(made.footer())
            whole.replace(path)
        except BaseException:
            whole.unlink(missing_ok=True)
            raise

    def write_for(self, reason: str) -> str | None:
        """Call `write_now()`, but not again within `seconds`."""
        now = time.monotonic()
        with self._lock:
            if now < self._not_before:
                return None
            self._not_before = now + self.options.seconds
        return self.write_now(reason)

    def write_now(self, reason: str) -> str | None:
        """Write the file of the options. Return its path, or None if it was not written.

        An error is logged.
        """
        if self.options.path is None:
            return None
        path = os.fsdecode(self.options.path)
        try:
            self.write(path)
        except OSError as error:
            log.error("a trace could not be written", file=path, error=error)
            return None
        log.warning("the latest trace was written", file=path, reason=reason)
        return path


def not_recorded(system: str) -> CallboardError:
    """Return the error for a system whose workers keep no records."""
    return CallboardError(
        f"the system {system!r} keeps no records, because monitoring is off: make it with "
        "monitoring='times', or with trace="
    )
