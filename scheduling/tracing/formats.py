"""The formats of trace files: Perfetto's packets, and the JSON of Chrome's trace viewer."""

from __future__ import annotations

import itertools
import json
import os
import struct
import time
from collections.abc import Callable
from typing import Any, Protocol

from callboard.core import checks
from callboard.core.errors import ConfigError
from callboard.core.text import safe_repr
from callboard.scheduling.tracing.track_encoder import RECORD_SIZE, TrackEncoder, message_event
from callboard.scheduling.worker import WorkerThread

# A record in memory: time, spent, actor, dispatch, messages, queue, created, uses, kind, began.
RECORD = struct.Struct("=qqQQQqqQc7xq")
assert RECORD.size == RECORD_SIZE

WAITS = {b"w": "idle", b"s": "suspended"}
_OF_CHANNELS, _EXIT, _STAGE = b"u", b"x", b"S"
_MESSAGES = {b"f": "s", b"t": "f", b"d": "i"}  # sampled ones, sent, taken and lost: their phases

Names = dict[int, bytes]


class TraceFormat(Protocol):
    """Makes the bytes of one trace file. One thread at a time."""

    def header(self) -> bytes:
        """Return what the file begins with."""
        ...

    def records(self, worker: WorkerThread, records: bytes, names: Names) -> bytes:
        """Return the events of a worker's records. `names` are those of actors and operators."""
        ...

    def instant(self, at: int, text: str) -> bytes:
        """Return an event that takes no time, at a moment in monotonic ns."""
        ...

    def forget_all_but(self, workers: list[WorkerThread]) -> None:
        """Forget the other workers, which have ended."""
        ...

    def footer(self) -> bytes:
        """Return what the file ends with."""
        ...


class PerfettoFormat:
    """Packets of protobuf: a sequence for each worker, and one for the process."""

    def __init__(self, system: str) -> None:
        self._system = system
        self._process = TrackEncoder(1)
        self._tracks: dict[WorkerThread, TrackEncoder] = {}
        self._numbers = itertools.count(2)

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
        """Return the packets of a worker's track, which the first ones describe."""
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

    def forget_all_but(self, workers: list[WorkerThread]) -> None:
        """Forget the other workers' tracks."""
        self._tracks = {one: track for one, track in self._tracks.items() if one in workers}

    def footer(self) -> bytes:
        """Return nothing: packets are whole by themselves."""
        return b""


class ChromeFormat:
    """A list of events in JSON, an event on a line. Times are in microseconds."""

    def __init__(self, system: str) -> None:
        self._system = system
        self._threads: dict[WorkerThread, int] = {}
        self._pid = os.getpid()

    def header(self) -> bytes:
        """Return the process's name."""
        named = self._of_process("process_name", 0, self._system)
        return b"[\n" + _line(named).removeprefix(b",\n")

    def records(self, worker: WorkerThread, records: bytes, names: Names) -> bytes:
        """Return whole slices, and counters."""
        lines = []
        if worker not in self._threads:
            self._threads[worker] = _thread_of(worker) or len(self._threads) + 1
            lines.append(self._of_process("thread_name", self._threads[worker], worker.name))
        thread = self._threads[worker]
        for record in RECORD.iter_unpack(records):
            end, spent, actor, arrow, messages, queue, other, _, kind, began = record
            if kind in (_OF_CHANNELS, _EXIT):
                continue
            if kind in _MESSAGES:
                other_name = _name_in(names, other)
                lines += self._message(kind, end, thread, arrow, other_name)
                continue
            began = began or end - spent
            event = {"ph": "X", "ts": began / 1e3, "dur": (end - began) / 1e3}
            event |= {"pid": self._pid, "tid": thread}
            name = _name_in(names, actor).decode()
            if kind in WAITS:
                lines.append(event | {"name": WAITS[kind], "cat": "wait"})
                continue
            what, cat = ("rows", "operator") if kind == _STAGE else ("messages", "dispatch")
            lines.append(event | {"name": name, "cat": cat, "args": {what: messages}})
            if queue >= 0 and kind != _STAGE:
                count = {"ph": "C", "name": f"queue of {name}", "ts": end / 1e3, "pid": self._pid}
                lines.append(count | {"args": {"messages": queue}})
        return b"".join(map(_line, lines))

    def _message(
        self, kind: bytes, at: int, thread: int, arrow: int, other: bytes
    ) -> list[dict[str, Any]]:
        """Return the begin or the end of an arrow, or that a dead letter has none."""
        phase = _MESSAGES[kind]
        event = {"ph": phase, "cat": "message", "ts": at / 1e3, "pid": self._pid, "tid": thread}
        if phase == "i":
            return [event | {"s": "t", "name": message_event(ord(kind), other).decode()}]
        ends = {"bp": "e"} if phase == "f" else {}
        return [event | {"id": arrow, "name": "message"} | ends] if arrow else []

    def instant(self, at: int, text: str) -> bytes:
        """Return an event of the process."""
        event = {"ph": "i", "s": "p", "name": text, "cat": "event", "ts": at / 1e3}
        return _line(event | {"pid": self._pid, "tid": 0})

    def forget_all_but(self, workers: list[WorkerThread]) -> None:
        """Forget the other workers' threads."""
        self._threads = {one: tid for one, tid in self._threads.items() if one in workers}

    def footer(self) -> bytes:
        """Return the end of the list."""
        return b"\n]\n"

    def _of_process(self, what: str, thread: int, name: str) -> dict[str, Any]:
        event = {"ph": "M", "name": what, "pid": self._pid, "tid": thread}
        return event | {"args": {"name": name}}


def _line(event: dict[str, Any]) -> bytes:
    return b",\n" + json.dumps(event).encode()


def _name_in(names: Names, number: int) -> bytes:
    # Not `get()`: on free-threaded CPython 3.13 it locks a dictionary twice if another thread made
    # the key, and spins: milliseconds on a busy machine.
    try:
        return names[number]
    except KeyError:
        return b"(ended)"


def _thread_of(worker: WorkerThread) -> int:
    """Return the number that the kernel has for a worker's thread; 0 without one."""
    return 0 if worker.thread is None else worker.thread.native_id or 0


FORMATS: dict[str, Callable[[str], TraceFormat]] = {
    "perfetto": PerfettoFormat,
    "json": ChromeFormat,
}


def format_for(path: str | os.PathLike[str], name: str | None) -> Callable[[str], TraceFormat]:
    """Return the format of this name; without one, JSON for a path that ends so, else Perfetto's.

    Raises ConfigError.
    """
    if name is None:
        name = "json" if os.fsdecode(path).endswith(".json") else "perfetto"
    return FORMATS[checks.one_of("the format of a trace", name, tuple(FORMATS), error=ConfigError)]


def check_path(what: str, path: Any) -> str:
    """Return a path as a string. Raises ConfigError for anything else."""
    if isinstance(path, str | os.PathLike) and os.fsdecode(path):
        return os.fsdecode(path)
    raise ConfigError(f"{what} is the path of a file, not {safe_repr(path)}")
