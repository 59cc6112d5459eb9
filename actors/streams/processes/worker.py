"""A worker process of graphs: it runs segments, round by round, on its main thread."""

from __future__ import annotations

import os
import pickle
import select
import signal
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

from callboard.core.child_process import take_standard_input
from callboard.mailbox.shared.byte_channel import ByteChannel
from callboard.streams.errors import FailedRow, StreamError
from callboard.streams.processes.pickling import dumps_in_process, sendable
from callboard.streams.programs.program import Batch, Program, Watermark

# The beginning of a message: its kind, and the numbers of the round and of the segment. After it
# come the operators, or the rows.
HEADER = struct.Struct("<BQQ")
OPERATORS, ROUND, END = range(3)
# The beginning of an answer: the number of the round. After it come the outputs.
ANSWER = struct.Struct("<Q")

# Seconds after which a process whose parent has ended ends, whatever its functions do.
_GRACE = 0.5
# Seconds between two checks for the parent: another child of it may keep the pipe open.
_LOOK = 0.5


def main(spec: dict[str, Any]) -> int:
    """Run rounds until the parent ends, or wants the end. Returns the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this
    alive: int = spec["alive"]
    os.set_inheritable(alive, False)
    os.register_at_fork(after_in_child=lambda: os.close(alive))  # its end is not this one's
    parent = os.getppid()
    life = take_standard_input()
    threading.Thread(target=_follow, args=(life, parent), daemon=True).start()
    memory, own, other = spec["memory"], spec["own"], spec["other"]
    for descriptor in (memory, own, other):
        os.set_inheritable(descriptor, False)
    channel = ByteChannel(memory, spec["capacity"], own, other, False)
    os.close(memory)
    worker = _Worker(channel, life)
    try:
        while (message := worker.next_message()) is not None:
            worker.handle(message)
    finally:
        worker.close()
    return 0


def _follow(life: int, parent: int) -> None:
    """End the process when its parent has ended, though a function runs on the main thread."""
    while not select.select([life], [], [], _LOOK)[0] and os.getppid() == parent:
        pass
    time.sleep(_GRACE)
    os._exit(1)


class _Worker:
    def __init__(self, channel: ByteChannel, life: int) -> None:
        self._channel = channel
        self._life = life
        self._segments: dict[int, _Segment] = {}

    def next_message(self) -> bytes | None:
        """Wait for a message. None: the end of this process is wanted."""
        channel = self._channel
        while True:
            looked = channel.look()
            if (message := channel.receive()) is not None:
                return message
            if channel.is_broken or select.select([self._life], [], [], 0)[0]:
                return None
            channel.wait(looked, self._life)

    def handle(self, message: bytes) -> None:
        """Run a round, and answer; or begin with a segment, or end with it."""
        kind, number, segment = HEADER.unpack_from(message)
        body = memoryview(message)[HEADER.size :]
        if kind == OPERATORS:
            self._segments[segment] = _Segment(*pickle.loads(body))
        elif kind == END:
            if (ended := self._segments.pop(segment, None)) is not None:
                ended.close()
        else:
            self._send(ANSWER.pack(number) + self._segments[segment].answer(body))

    def close(self) -> None:
        """Close what the operators have open."""
        for segment in self._segments.values():
            segment.close()

    def _send(self, message: bytes) -> None:
        channel = self._channel
        sent = 0
        while True:
            looked = channel.look()
            sent = channel.send(message, sent)
            if sent == len(message):
                return
            if channel.is_broken or select.select([self._life], [], [], 0)[0]:
                return  # nobody waits for it
            channel.wait(looked, self._life)


class _Dropped:
    """The rows of a round that operators dropped, for the run to count."""

    def __init__(self) -> None:
        self.found: list[tuple[str, Any]] = []

    def _skipped(self, failure: FailedRow) -> None:
        self.found.append(("skipped", _without_context(failure)))

    def _late(self, operator: str, row: Any) -> None:
        self.found.append(("late", (operator, row)))


class _Segment:
    """The operators of a segment.

    `names` are theirs, and `ports` is the number of outputs of the last one. If they cannot be
    made, for instance because a module cannot be imported here, each round fails.
    """

    def __init__(self, names: list[str], ports: int, operators: bytes) -> None:
        self._names, self._ports = names, ports
        self._dropped = _Dropped()
        self._programs: list[Program] = []
        self._error: Exception | None = None
        try:
            makers: list[Callable[[], Program]] = pickle.loads(operators)
            for make in makers:
                self._programs.append(make())
                self._programs[-1].row_counts = self._dropped
        except Exception as error:
            self._error = error

    def answer(self, body: memoryview) -> bytes:
        """Return the encoded outputs of a round, or why it could not be run."""
        self._dropped.found = []
        error = self._error
        if error is None:
            try:
                rows, lineages, final = pickle.loads(body)
            except Exception as raised:
                error = raised
            else:
                return self._run(rows, lineages, final)
        failure = self._names[0], None, None, "", sendable(error)
        outputs: list[Any] = [([], None) for _ in range(self._ports)]
        return dumps_in_process((outputs, failure, [(0, 0, 0, 0)] * len(self._names), []))

    def close(self) -> None:
        for program in self._programs:
            program.close()

    def _run(self, rows: list[Any], lineages: list[int] | None, final: bool) -> bytes:
        """Pass a round through the operators.

        Returns the outputs of the last one, by port; what ended the round; for each operator, how
        many rows entered and left it, and how many with watermarks; and the rows that were dropped.
        """
        batch = Batch(rows, 0, final, lineages)
        into = [batch]
        counts = []
        failure: StreamError | None = None
        for program in self._programs:
            batch = into[0]
            into = [batch.follower() for _ in program.ports]
            begun = time.monotonic_ns()
            try:
                program.process_many([batch], into)
            except StreamError as raised:
                failure = raised
            except BaseException as raised:  # no error of a function; for instance SystemExit
                failure = StreamError(program.name)
                failure.__cause__ = raised
            if failure is not None:
                for one in into:
                    one.final = False
            main = into[0].rows if into else []
            spent = time.monotonic_ns() - begun
            counts.append((_rows_among(batch.rows), _rows_among(main), len(main), spent))
        return self._encoded(into, failure, counts)

    def _encoded(
        self,
        into: list[Batch],
        failure: StreamError | None,
        counts: list[tuple[int, int, int, int]],
    ) -> bytes:
        last = self._programs[-1]
        if last.errors == "side":
            port = last.ports.index("failures")
            into[port].rows = [
                _without_context(one) if isinstance(one, FailedRow) else one
                for one in into[port].rows
            ]
        outputs = [(batch.rows, batch.lineages) for batch in into]
        ended = None
        if failure is not None:
            cause = sendable(failure.__cause__)
            ended = failure.operator, failure.serial, failure.row, failure.when, cause
        try:
            return dumps_in_process((outputs, ended, counts, self._dropped.found))
        except Exception as error:
            return self._up_to(into, error, counts)

    def _up_to(self, into: list[Batch], error: Exception, counts: list[Any]) -> bytes:
        """Encode the outputs before the first one that cannot be pickled, which ends the run."""
        for batch in into:
            for at, row in enumerate(batch.rows):
                try:
                    dumps_in_process(row)
                except Exception as raised:
                    error = raised
                    batch.rows = batch.rows[:at]
                    if batch.lineages is not None:
                        batch.lineages = batch.lineages[:at]
                    break
        outputs = [(batch.rows, batch.lineages) for batch in into]
        error.add_note("An output of an operator in a worker process must be picklable.")
        name = self._programs[-1].name
        return dumps_in_process(
            (outputs, (name, None, None, "", sendable(error)), counts, self._dropped.found)
        )


def _without_context(failure: FailedRow) -> FailedRow:
    error = sendable(failure.error)
    assert isinstance(error, Exception)
    return FailedRow(failure.operator, failure.serial, failure.row, error)


def _rows_among(rows: list[Any]) -> int:
    return sum(type(row) is not Watermark for row in rows)
