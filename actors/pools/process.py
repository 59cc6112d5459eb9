"""A worker process, as its parent sees it: its start, its reports, and its end."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from contextlib import suppress
from threading import Lock, RLock
from typing import Any

from callboard._inside.answers.wait_cause import WaitReason
from callboard.core import child_process
from callboard.core.log import log
from callboard.observing.wait_report import WaitRecord
from callboard.pools.child import GRACE
from callboard.pools.process_ref import ProcessRef
from callboard.remote.client.connection import Connection
from callboard.remote.protocol.conversation import Submission
from callboard.remote.sockets.io_thread import IOThread

_MOST = 1 << 16  # bytes of a report that are read at a time
_SLACK = 1.0  # seconds more than its own grace that a process has to end


class WorkerProcess:
    """One place of a pool: a process, and after its end the next one at the same address."""

    def __init__(
        self,
        spec: dict[str, Any],
        connection: Connection,
        ref: ProcessRef,
        io: IOThread,
        on_end: Callable[[WorkerProcess, str], object],
        on_dead_letter: Callable[[dict[str, Any]], object],
    ) -> None:
        self.connection = connection
        self.ref = ref
        self.is_ending = False
        """Whether its end is wanted."""
        self._spec = spec
        self._io = io
        self._on_end = on_end
        self._on_dead_letter = on_dead_letter
        self._reading = RLock()  # of the pipe; a subscriber of dead letters may wait for an answer
        self._closing = Lock()  # of its input; it may be closed only once
        self._process: subprocess.Popen[bytes] | None = None
        self._reports = -1
        self._partial: list[bytes] = []  # the parts of a line that has not come as a whole
        self._why = ""
        self._ends = 0  # of processes at this place so far
        self.was_ready = False
        """Whether its actor has ever started."""

    @property
    def pid(self) -> int | None:
        """The number of the process, or None before its start."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start a process. Raises OSError."""
        reports, status = os.pipe()
        try:
            spec = {**self._spec, "status": status}
            self._process = child_process.start("callboard.pools.child", spec, [status])
        except BaseException:
            os.close(reports)
            raise
        finally:
            os.close(status)
        self._reports, self._partial, self._why = reports, [], ""
        os.set_blocking(reports, False)
        self._io.call_soon(lambda: self._io.loop.add_reader(reports, self._on_report, reports))

    def end(self) -> None:
        """Tell the process that its end is wanted. In any thread, any number of times."""
        self.is_ending = True
        process = self._process
        if process is not None:
            self._close_input(process)

    def wait(self) -> None:
        """Wait until the process has ended, and kill it if it takes too long."""
        process = self._process
        if process is None:
            return
        try:
            process.wait(GRACE + _SLACK)
        except subprocess.TimeoutExpired:
            log.warning("a process of a pool is killed: it did not end", process=process.pid)
            process.kill()
            process.wait()

    def close(self, why: str) -> None:
        """Let go of what is open, when the process and the pool's thread have ended. `why` is what
        the errors of open asks say.
        """
        self.read_reports()
        self.connection._close(why)
        with self._reading:
            reports, self._reports = self._reports, -1
        if reports >= 0:
            os.close(reports)

    def wait_of(self) -> WaitRecord:
        """Say what its pool waits for. Any thread."""
        waiting = self.ref.queue_length
        number = "no number yet" if self.pid is None else f"number {self.pid}"
        messages = "a message" if waiting == 1 else f"{waiting} messages"
        if not waiting:
            return WaitRecord(
                "process", self.ref.path, WaitReason.NO_INPUT, f"(process {number}) has no messages"
            )
        if not self.was_ready:
            words = f"(process {number}) is starting, and is to handle {messages}"
        else:
            words = f"(process {number}) has not handled {messages}"
        return WaitRecord("process", self.ref.path, WaitReason.PROCESS, words)

    def figures(self) -> dict[str, Any]:
        """Return the number of the process, and what it has to do, for JSON. Any thread."""
        return {
            "name": self.ref.path,
            "pid": self.pid,
            "started": self.was_ready,
            "waiting": self.ref.queue_length,
            "ends": self._ends,
        }

    def read_reports(self) -> bool:
        """Read what the process has said. In any thread. False: it will say no more."""
        is_over = False
        lines = []
        with self._reading:
            while self._reports >= 0 and not is_over:
                try:
                    data = os.read(self._reports, _MOST)
                except BlockingIOError:
                    break
                is_over = not data
                *ends, rest = data.split(b"\n")
                for end in ends:
                    lines.append(b"".join([*self._partial, end]))
                    self._partial = []
                self._partial.append(rest)
            for line in lines:
                self._note(json.loads(line))
        return not is_over

    def left_of(self, submissions: list[Submission]) -> list[list[int]]:
        """Return the places of messages that were lost and are not dead letters yet. Reports
        about them that still come are ignored.
        """
        with self._reading:
            self.read_reports()
            return [
                [place for place in range(submission.messages) if _mark_dead(submission, place)]
                for submission in submissions
            ]

    def _close_input(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        with self._closing, suppress(OSError):
            process.stdin.close()

    def _note(self, said: dict[str, Any]) -> None:
        if "reason" in said:
            sequence, place = said["at"] or (0, 0)
            submission = self.connection._own_session.told(sequence)
            if submission is None or _mark_dead(submission, place):
                self._on_dead_letter(said)
        elif "ready" in said:
            self.was_ready = True
        else:
            self._why = said["ended"]

    # --- on the pool's thread ---------------------------------------------------------------------

    def _on_report(self, reports: int) -> None:
        if self.read_reports():
            return
        self._io.loop.remove_reader(reports)
        with self._reading:
            self._reports = -1
            os.close(reports)
        process = self._process
        assert process is not None
        self._close_input(process)
        self.wait()
        self._process = None
        self._ends += 1
        self._on_end(self, self._why or _how(process.returncode))


def _mark_dead(submission: Submission, place: int) -> bool:
    """Note that a message is a dead letter. False: it is one already."""
    if submission.dead_letters is None:
        submission.dead_letters = set()
    is_new = place not in submission.dead_letters
    submission.dead_letters.add(place)
    return is_new


def _how(status: int) -> str:
    return f"killed by signal {-status}" if status < 0 else f"exit status {status}"
