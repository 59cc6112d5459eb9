"""A worker process: it runs segments, round by round, on its main thread."""

from __future__ import annotations

import logging
import os
import pickle
import select
import signal
import struct
import sys
import threading
import time
from collections import deque
from logging.handlers import QueueHandler
from typing import TYPE_CHECKING, Any, NoReturn

from callboard.core.child_process import take_standard_input
from callboard.mailbox.shared.byte_channel import ByteChannel
from callboard.mailbox.shared.process_channel import is_closed, open_channel
from callboard.worker_processes.message_blocks import MessageBlocks, open_blocks
from callboard.worker_processes.pickling import dumps_in_process

if TYPE_CHECKING:
    from callboard.worker_processes.message_blocks import Parts

# The beginning of a message: its kind, and the numbers of the round and of the segment. After it
# comes what makes the segment; or, in parts, the rows or the state.
HEADER = struct.Struct("<BQQ")
OPERATORS, ROUND, END, RESTORE, SNAPSHOT, CHECK = range(6)  # a check says if a state fits
TIMED = 128  # added to the kind of a round that a trace is to show
# The beginning of an answer: the number of the round. After it come the outputs, in parts.
ANSWER = struct.Struct("<Q")
# In place of that number: before a record of the log, and before what a trace is to show.
LOG, WORK = 2**64 - 1, 2**64 - 2

# Seconds after which a process whose parent has ended ends, whatever its functions do.
_GRACE = 0.5
# Seconds after which a thread beside the main one looks for room again.
_PAUSE = 0.001
# Seconds between two checks for the parent: another child of it may keep the pipe open.
_LOOK = 0.5


def main(spec: dict[str, Any]) -> int:
    """Run rounds until the parent ends, or wants the end. Returns the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this
    parent = os.getppid()
    life = take_standard_input()
    threading.Thread(target=_follow, args=(life, parent), daemon=True).start()
    worker = _Worker(open_channel(spec), open_blocks(spec), life)
    _forward_logs(worker, spec["levels"])
    if "PYTHONBREAKPOINT" not in os.environ:
        sys.breakpointhook = _refuse_breakpoint
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


def _forward_logs(worker: _Worker, levels: dict[str, int]) -> None:
    """Send the records of loggers to the program, which logs them. `levels` are those there."""
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    logging.getLogger().addHandler(_Forwarder(worker))  # type: ignore[arg-type]


class _Forwarder(QueueHandler):
    def enqueue(self, record: logging.LogRecord) -> None:
        """Send a record whose text is complete."""
        worker: Any = self.queue
        worker.send(ANSWER.pack(LOG), [dumps_in_process(record)])


def _refuse_breakpoint(*_: Any, **__: Any) -> NoReturn:
    raise RuntimeError(
        "a worker process has no terminal for breakpoint(): keep the operator in the program by "
        "here(), or use processes=0"
    )


class _Worker:
    """Runs the segments, which the program makes and encodes.

    A segment has `answer(parts)`, which returns the answer to a round in parts, also if that is an
    error; `name` and `rows`, which say for traces what that round was; and `close()`. One with a
    state also has `restore(parts)`, and `state()` and `check()`, which return the answers to these
    requests.
    """

    def __init__(self, channel: ByteChannel, blocks: MessageBlocks, life: int) -> None:
        self._channel = channel
        self._blocks = blocks
        self._life = life
        self._segments: dict[int, Any] = {}
        self._unsent: deque[bytes] = deque()
        self._is_sending = False
        self._lock = threading.RLock()  # of these two; a signal's handler may log at any time

    def next_message(self) -> bytes | None:
        """Wait for a message. None: the end of this process is wanted."""
        channel = self._channel
        while True:
            looked = channel.look()
            if (message := channel.receive()) is not None:
                return message
            if channel.is_broken or is_closed(self._life):
                return None
            channel.wait(looked, self._life)

    def handle(self, message: bytes) -> None:
        """Run a round, and answer; or begin with a segment, or end with it."""
        kind, number, segment = HEADER.unpack_from(message)
        if kind == OPERATORS:
            make = pickle.loads(memoryview(message)[HEADER.size :])
            self._segments[segment] = make()
        elif kind == END:
            if (ended := self._segments.pop(segment, None)) is not None:
                ended.close()
            self._blocks.trim()
        else:
            found = self._segments[segment]
            parts = self._blocks.parts(message, HEADER.size)
            if kind == RESTORE:
                found.restore(parts)
                return
            if kind == ROUND:
                answer = found.answer(parts)
            elif kind == ROUND | TIMED:
                begun = time.monotonic_ns()
                answer = found.answer(parts)
                work = found.name, begun, time.monotonic_ns(), found.rows
                self.send(ANSWER.pack(WORK), [dumps_in_process(work)])
            else:
                answer = [found.state() if kind == SNAPSHOT else found.check()]
            self.send(ANSWER.pack(number), answer)

    def close(self) -> None:
        """Close what the operators have open."""
        for segment in self._segments.values():
            segment.close()

    def send(self, head: bytes, parts: Parts) -> None:
        """Send a message as a whole. Any thread."""
        with self._lock:
            self._unsent.append(self._blocks.message(head, parts))
            if self._is_sending:  # this is a signal's handler, between two pieces of a message
                return
            self._is_sending = True
            try:
                while self._unsent:
                    self._send_pieces(self._unsent.popleft())
            finally:
                self._is_sending = False

    def _send_pieces(self, message: bytes) -> None:
        channel = self._channel
        sent = 0
        while True:
            looked = channel.look()
            sent = channel.send(message, sent)
            if sent == len(message):
                return
            if channel.is_broken or is_closed(self._life):
                return  # nobody waits for it
            if threading.current_thread() is threading.main_thread():
                channel.wait(looked, self._life)
            else:  # the main thread may wait at the channel, and only one thread may
                time.sleep(_PAUSE)
