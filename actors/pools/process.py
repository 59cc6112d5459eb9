"""A worker process, as its parent has it: started, heard, and ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from threading import Lock, RLock
from typing import Any

from callboard._inside.answers.wait_cause import WaitReason
from callboard.core.log import log
from callboard.observing.wait import WaitRecord
from callboard.pools.child import GRACE
from callboard.pools.process_ref import ProcessRef
from callboard.remote.client.connection import Connection
from callboard.remote.protocol.conversation import Submission
from callboard.remote.sockets.io_thread import IOThread

# The spec has what the interpreter wants first: where modules are.
_PROGRAM = """
import json, sys
spec = json.loads(sys.stdin.buffer.readline())
sys.path[:] = spec["modules"]
sys.argv[:] = spec["argv"]
from callboard.pools.child import main
sys.exit(main(spec, int({status})))
"""
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
        on_letter: Callable[[dict[str, Any]], object],
    ) -> None:
        self.connection = connection
        self.ref = ref
        self.is_ending = False
        """Whether its end is wanted."""
        self._spec = json.dumps(spec).encode() + b"\n"
        self._io = io
        self._on_end = on_end
        self._on_letter = on_letter
        self._hearing = RLock()  # of the pipe; a subscriber of dead letters may wait for an answer
        self._closing = Lock()  # of its input; two closes at a time are one too many
        self._process: subprocess.Popen[bytes] | None = None
        self._heard = -1
        self._said: list[bytes] = []  # the parts of a line that has not come as a whole
        self._why = ""
        self._ends = 0  # of processes at this place so far
        self.was_ready = False
        """Whether its actor has ever started."""

    @property
    def pid(self) -> int | None:
        """The number of the process; None while there is none."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start a process. Raises OSError."""
        heard, status = os.pipe()
        try:
            program = _PROGRAM.format(status=status)
            flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
            self._process = subprocess.Popen(
                [sys.executable, *flags, "-P", "-c", program],
                stdin=subprocess.PIPE,
                pass_fds=[status],
            )
        except BaseException:
            os.close(heard)
            raise
        finally:
            os.close(status)
        self._heard, self._said, self._why = heard, [], ""
        os.set_blocking(heard, False)
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(self._spec)
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended, and that is heard
        self._io.call_soon(lambda: self._io.loop.add_reader(heard, self._hear, heard))

    def end(self) -> None:
        """Tell the process that its end is wanted. In any thread, and as often as one likes."""
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
        self.hear()
        self.connection._close(why)
        with self._hearing:
            heard, self._heard = self._heard, -1
        if heard >= 0:
            os.close(heard)

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

    def hear(self) -> bool:
        """Read what the process has said. In any thread. False: it will say no more."""
        is_over = False
        lines = []
        with self._hearing:
            while self._heard >= 0 and not is_over:
                try:
                    data = os.read(self._heard, _MOST)
                except BlockingIOError:
                    break
                is_over = not data
                *ends, rest = data.split(b"\n")
                for end in ends:
                    lines.append(b"".join([*self._said, end]))
                    self._said = []
                self._said.append(rest)
            for line in lines:
                self._note(json.loads(line))
        return not is_over

    def left_of(self, submissions: list[Submission]) -> list[list[int]]:
        """Return the places of messages that were lost, and that are no dead letters yet. A letter
        of them that still comes is none.
        """
        with self._hearing:
            self.hear()
            return [
                [place for place in range(submission.messages) if _bury(submission, place)]
                for submission in submissions
            ]

    def _close_input(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        with self._closing, suppress(OSError):
            process.stdin.close()

    def _note(self, said: dict[str, Any]) -> None:
        if "reason" in said:
            sequence, place = said["at"] or (0, 0)
            submission = self.connection.session.told(sequence)
            if submission is None or _bury(submission, place):
                self._on_letter(said)
        elif "ready" in said:
            self.was_ready = True
        else:
            self._why = said["ended"]

    # --- on the pool's thread ---------------------------------------------------------------------

    def _hear(self, heard: int) -> None:
        if self.hear():
            return
        self._io.loop.remove_reader(heard)
        with self._hearing:
            self._heard = -1
            os.close(heard)
        process = self._process
        assert process is not None
        self._close_input(process)
        self.wait()
        self._process = None
        self._ends += 1
        self._on_end(self, self._why or _how(process.returncode))


def _bury(submission: Submission, place: int) -> bool:
    """Note that a message is a dead letter. False: it is one already."""
    if submission.buried is None:
        submission.buried = set()
    is_new = place not in submission.buried
    submission.buried.add(place)
    return is_new


def _how(status: int) -> str:
    return f"killed by signal {-status}" if status < 0 else f"exit status {status}"
