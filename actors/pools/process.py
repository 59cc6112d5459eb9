"""A worker process, as its parent sees it: its start, its reports, and its end."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock, Thread
from typing import Any

from callboard._inside.answers.wait_cause import WaitReason
from callboard.core.log import log
from callboard.mailbox.shared.process_channel import ProcessChannel
from callboard.observing.wait_report import WaitRecord
from callboard.pools.child import GRACE
from callboard.pools.link import ProcessLink
from callboard.pools.process_ref import ProcessRef
from callboard.scheduling.monitor import ProcessStatistics

_CAPACITY = 1 << 20  # bytes of shared memory in each direction
_SLACK = 1.0  # seconds more than its own grace that a process has to end


class WorkerProcess:
    """One place of a pool: a process, and after its end the next one."""

    def __init__(
        self,
        spec: dict[str, Any],
        link: ProcessLink,
        ref: ProcessRef,
        on_end: Callable[[WorkerProcess, str], object],
    ) -> None:
        self.ref = ref
        self.is_ending = False
        """Whether its end is wanted."""
        self._spec = spec
        self._link = link
        self._on_end = on_end
        self._process: ProcessChannel | None = None
        self._keeper: Thread | None = None
        self._ends = 0  # of processes at this place so far
        self._busy = 0.0  # the processor time of those that have ended
        self._lock = Lock()  # of this

    @property
    def was_ready(self) -> bool:
        """Whether its actor has ever started."""
        return self._link.was_ready

    @property
    def pid(self) -> int | None:
        """The number of the process, or None while there is none."""
        process = self._process
        return None if process is None else process.process.pid

    def start(self) -> None:
        """Start a process. Raises OSError."""
        process = ProcessChannel("callboard.pools.child", self._spec, _CAPACITY)
        self._process = process
        name = f"{self._spec['system']}-keeper"
        self._keeper = Thread(target=self._keep, args=(process,), name=name, daemon=True)
        self._keeper.start()
        if self.is_ending:  # meanwhile
            self.end()

    def end(self) -> None:
        """Tell the process that its end is wanted. In any thread, any number of times."""
        self.is_ending = True
        process = self._process
        if process is not None:
            process.want_end()

    def wait(self) -> None:
        """Wait until the process has ended, and kill it if it takes too long."""
        process, keeper = self._process, self._keeper
        if process is None or keeper is None:
            return
        keeper.join(GRACE + _SLACK)
        if keeper.is_alive():
            log.warning("a process of a pool is killed: it did not end", process=self.pid)
            process.process.kill()
            keeper.join()

    def _keep(self, process: ProcessChannel) -> None:
        """Receive from a process until it has ended."""
        why = ""
        try:
            why = self._link.keep(process)
        finally:
            if not process.has_ended() and why:
                process.process.kill()
            how = process.wait(GRACE + _SLACK)
            why = why or how
            self._link.end(f"the process of {self.ref.path} has ended: {why}")
            with self._lock:
                self._busy += process.busy()
                self._process = None
            process.close()
            self._ends += 1
            self._on_end(self, why)

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

    def figures(self) -> ProcessStatistics:
        """Return the figures of the process, and of those before it. Any thread."""
        with self._lock:
            process = self._process
            busy = self._busy + (0.0 if process is None else process.busy())
        return ProcessStatistics(
            name=self.ref.path,
            pid=self.pid,
            done=self._link.done,
            waiting=self.ref.queue_length,
            busy=busy,
            sent=self._link.bytes_sent,
            received=self._link.bytes_received,
            ends=self._ends,
            started=self.was_ready,
        )
