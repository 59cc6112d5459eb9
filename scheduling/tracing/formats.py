"""The formats of trace files: Perfetto's packets, and lines of text."""

from __future__ import annotations

import itertools
import os
import struct
import time
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from callboard.core import checks
from callboard.core.errors import ConfigError
from callboard.core.text import one_line, safe_repr
from callboard.scheduling.tracing.track_encoder import RECORD_SIZE, TrackEncoder
from callboard.scheduling.worker import WorkerThread

# A record in memory: time, spent, actor, dispatch, messages, queue, created, uses, kind, began.
RECORD = struct.Struct("=qqQQQqqQc7xq")
assert RECORD.size == RECORD_SIZE

# Kinds of records, as in `records.hpp`. An actor has ended, is ready, or is blocked: on input, on
# room, or on any of several channels.
_ENDED, _OF_CHANNELS, _OF_STAGES = b"Z", b"u", b"S"
_STATES = {_ENDED: "Z", b"R": "R", b"i": "Bi", b"o": "Bo", b"a": "Ba"}
_OF_WORKERS = {
    b"w": ("waited (", ") for "),
    b"s": ("was suspended (", ") for "),
    b"x": ("exited wait_cnt ", " wait_time "),
}

Names = dict[int, bytes]


class ProcessWork(NamedTuple):
    """A round that a worker process has worked on. Times are in monotonic ns."""

    process: str
    pid: int
    operators: str
    began: int
    ended: int
    rows: int


class TraceFormat(Protocol):
    """Makes the bytes of one trace file. One thread at a time."""

    def header(self) -> bytes:
        """Return the beginning of the file."""
        ...

    def records(self, worker: WorkerThread, records: bytes, names: Names) -> bytes:
        """Return the events of a worker's records. `names` are those of actors and operators."""
        ...

    def instant(self, at: int, text: str) -> bytes:
        """Return an event without duration, at a moment in monotonic ns."""
        ...

    def work(self, one: ProcessWork) -> bytes:
        """Return the events of a round in a worker process."""
        ...

    def forget_all_but(self, workers: list[WorkerThread]) -> None:
        """Forget the other workers, which have ended."""
        ...

    def footer(self) -> bytes:
        """Return the end of the file."""
        ...


class PerfettoFormat:
    """Protobuf packets for Perfetto: a sequence for each worker, and one for the process."""

    def __init__(self, system: str) -> None:
        self._system = system
        self._process = TrackEncoder(1)
        self._tracks: dict[WorkerThread, TrackEncoder] = {}
        self._numbers = itertools.count(2)
        self._processes: dict[int, TrackEncoder] = {}
        self._segments: dict[str, int] = {}

    def header(self) -> bytes:
        """Return the process, its clocks and the track of events."""
        self._process.begin_process(
            os.getpid(),
            self._system,
            time.time_ns(),
            time.monotonic_ns(),
            time.clock_gettime_ns(time.CLOCK_BOOTTIME),
        )
        return self._process.take()

    def records(self, worker: WorkerThread, records: bytes, names: Names) -> bytes:
        """Return the packets of a worker's track. The first ones describe it."""
        if not records:
            return b""
        track = self._tracks.get(worker)
        if track is None:
            track = self._tracks[worker] = TrackEncoder(next(self._numbers))
            time_of_first, spent, *_ = RECORD.unpack_from(records)
            track.begin_worker(
                os.getpid(), _thread_of(worker), worker.name, max(time_of_first - spent, 0)
            )
        track.add(records, names)
        return track.take()

    def instant(self, at: int, text: str) -> bytes:
        """Return a packet of the process."""
        self._process.add_instant(at, text)
        return self._process.take()

    def work(self, one: ProcessWork) -> bytes:
        """Return the packets of a slice on the process's track. The first ones describe it."""
        track = self._processes.get(one.pid)
        if track is None:
            track = self._processes[one.pid] = TrackEncoder(next(self._numbers))
            track.begin_worker(one.pid, one.pid, one.process, one.began)
        number = self._segments.setdefault(one.operators, len(self._segments) + 1)
        spent = one.ended - one.began
        record = RECORD.pack(one.ended, spent, number, 0, one.rows, -1, 0, 0, _OF_STAGES, one.began)
        track.add(record, {number: one.operators.encode(errors="replace")})
        return track.take()

    def forget_all_but(self, workers: list[WorkerThread]) -> None:
        """Forget the other workers' tracks."""
        self._tracks = {one: track for one, track in self._tracks.items() if one in workers}

    def footer(self) -> bytes:
        """Return nothing: each packet is complete."""
        return b""


class TextFormat:
    """A line for each dispatch, with the items of LPEL's logs (Prokesch 2011, section 5.4.3).

    The worker comes after the time. Waits of workers, failures and dead letters have `***`::

        248954687985216 net-0 tid 191 /a disp 3 st Z et 7473 creat 248954684456346 [246,w,C,2,-!*;]
        248954687997369 *** net-0 waited (18) for 0.000056292

    The records of a dispatch's channels come before that of the dispatch.
    """

    def __init__(self, system: str) -> None:
        self._workers: dict[WorkerThread, tuple[str, list[str]]] = {}

    def header(self) -> bytes:
        """Return nothing."""
        return b""

    def records(self, worker: WorkerThread, records: bytes, names: Names) -> bytes:
        """Return the lines of a worker's dispatches, waits, suspensions and end."""
        if worker not in self._workers:
            self._workers[worker] = one_word(worker.name), []
        name, uses = self._workers[worker]
        lines = []
        for record in RECORD.iter_unpack(records):
            end, spent, actor, dispatch, messages, queue, created, used, kind, _ = record
            if kind == _OF_CHANNELS:
                uses.append(_use(record))
            elif kind in _OF_WORKERS:
                before, between = _OF_WORKERS[kind]
                seconds = f"{spent // 10**9}.{spent % 10**9:09}"
                lines.append(f"{end} *** {name} {before}{dispatch}{between}{seconds}")
            elif kind in _STATES:
                line = f"{end} {name} tid {actor} {_name_in(names, actor).decode()} disp {dispatch}"
                line += f" st {_STATES[kind]} et {spent}"
                if kind == _ENDED:
                    line += f" creat {created}"
                if messages or queue > 0:
                    line += f" msgs {messages}" + (f" queue {queue}" if queue >= 0 else "")
                if used:
                    kept = uses[-used:]
                    line += f" [{''.join(kept)}{'...' if used > len(kept) else ''}]"
                lines.append(line)
                uses.clear()
        return "".join(f"{line}\n" for line in lines).encode()

    def instant(self, at: int, text: str) -> bytes:
        """Return a line."""
        return f"{at} *** {one_line(text)}\n".encode(errors="replace")

    def work(self, one: ProcessWork) -> bytes:
        """Return nothing: there are no lines for operators."""
        return b""

    def forget_all_but(self, workers: list[WorkerThread]) -> None:
        """Forget the other workers."""
        self._workers = {one: known for one, known in self._workers.items() if one in workers}

    def footer(self) -> bytes:
        """Return nothing."""
        return b""


def _use(record: tuple[Any, ...]) -> str:
    """Return a dispatch's use of an end of a channel: see ChannelUse in `records.hpp`."""
    channel, moved, mode, state, flags, *_ = record
    has_blocked, has_woken, has_moved = flags & 1, flags & 2, flags & 4
    marks = f"{'?' if has_blocked else '-'}{'!' if has_woken else '-'}{'*' if has_moved else '-'}"
    return f"{channel},{chr(mode)},{chr(state)},{moved},{marks};"


def one_word(name: str) -> str:
    """Return a name with spaces and unprintable characters replaced."""
    if name.isprintable() and " " not in name:
        return name
    return "".join(c if c.isprintable() and c != " " else "_" for c in name)


def _name_in(names: Names, number: int) -> bytes:
    # Not `get()`: on free-threaded CPython 3.13 it locks a dictionary twice if another thread made
    # the key, and spins: milliseconds on a busy machine.
    try:
        return names[number]
    except KeyError:
        return b"(ended)"


def _thread_of(worker: WorkerThread) -> int:
    """Return the kernel's number of a worker's thread, or 0."""
    return 0 if worker.thread is None else worker.thread.native_id or 0


FORMATS: dict[str, Callable[[str], TraceFormat]] = {
    "perfetto": PerfettoFormat,
    "text": TextFormat,
}


def format_for(path: str | os.PathLike[str], name: str | None) -> Callable[[str], TraceFormat]:
    """Return the format with this name; if that is None, text for a .txt file, else Perfetto's.

    Raises ConfigError.
    """
    if name is None:
        name = "text" if os.fsdecode(path).endswith(".txt") else "perfetto"
    return FORMATS[checks.one_of("the format of a trace", name, tuple(FORMATS), error=ConfigError)]


def check_path(what: str, path: Any) -> str:
    """Return a path as a string. Raises ConfigError for anything else."""
    if isinstance(path, str | os.PathLike) and os.fsdecode(path):
        return os.fsdecode(path)
    raise ConfigError(f"expected the path of a file as {what}, got {safe_repr(path)}")
