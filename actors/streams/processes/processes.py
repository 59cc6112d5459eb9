"""The worker processes of a system, as the program sees them."""

from __future__ import annotations

import fcntl
import itertools
import os
import select
import subprocess
import threading
import time
import weakref
from collections import deque
from contextlib import suppress
from typing import Any

from callboard._inside.answers.future import Future
from callboard.actor import Actor
from callboard.core import child_process
from callboard.core.errors import CallboardError
from callboard.core.log import log
from callboard.mailbox.shared.byte_channel import ByteChannel, memory_size
from callboard.streams.errors import ProcessLost
from callboard.streams.processes.worker import ANSWER, END, HEADER, OPERATORS, ROUND
from callboard.system import ActorSystem

_CAPACITY = 1 << 20  # bytes of shared memory in each direction, for each process
# Processes that may end one after the other without an answer, before no further one is started.
_MOST_ENDS = 10
# Seconds before a process is started in the place of one that never answered; then twice as long.
_BACKOFF = 0.05
_MOST_BACKOFF = 2.0
# Seconds in which a process may end by itself, or end a round of a run that has ended.
_GRACE = 2.0


class Code:
    """The encoded operators of a segment."""

    def __init__(self, number: int, operators: bytes) -> None:
        self.number = number
        self.operators = operators
        self.ended: float | None = None
        """When its run ended, on the monotonic clock."""


class _Round:
    """A round that a process is to answer."""

    def __init__(self, number: int, code: Code, body: bytes) -> None:
        self.number = number
        self.code = code
        self.body = body
        self.answer: Future[bytes] = Future()


class _WorkerProcess:
    """One place: a process, and after its end the next one.

    Its own thread, the keeper, receives the answers. Any thread sends. Messages that find no room
    in the shared memory wait here.
    """

    def __init__(self, processes: WorkerProcesses, name: str) -> None:
        self._processes = processes
        self._name = name
        self._lock = threading.Lock()
        self._rounds: dict[int, _Round] = {}  # without an answer, in the order of sending
        self._unsent: deque[bytes] = deque()
        self._sent = 0  # bytes of the first of these
        self._known: set[int] = set()  # the segments that the process has
        self._channel: ByteChannel | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._is_over = False
        self._stopping = threading.Event()
        self._ends = 0  # one after the other, without an answer
        self._answered = 0.0  # the time of the latest answer
        self._keeper = threading.Thread(target=self._keep, name=name, daemon=True)
        self._keeper.start()

    @property
    def waiting(self) -> int:
        """The number of rounds without an answer."""
        return len(self._rounds)

    def send(self, one: _Round) -> bool:
        """Send a round. False: no process is started here any more."""
        with self._lock:
            if self._is_over:
                return False
            self._rounds[one.number] = one
            if self._channel is not None:
                self._enqueue(one)
                self._flush()
            return True

    def forget(self, code: Code) -> None:
        """Let the process know that a segment's run has ended."""
        with self._lock:
            if code.number in self._known:
                self._known.discard(code.number)
                self._unsent.append(HEADER.pack(END, 0, code.number))
                self._flush()
            if self._channel is not None:
                self._channel.wake()  # the keeper may have to end the process

    def stop(self) -> None:
        """Have the process end."""
        self._stopping.set()
        with self._lock:
            self._is_over = True
            if self._channel is not None:
                self._channel.wake()
            process = self._process
        if process is not None and process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()

    def join(self) -> None:
        """Wait until it has ended."""
        self._keeper.join()

    # --- with the lock ----------------------------------------------------------------------------

    def _enqueue(self, one: _Round) -> None:
        segment = one.code.number
        if segment not in self._known:
            self._known.add(segment)
            self._unsent.append(HEADER.pack(OPERATORS, 0, segment) + one.code.operators)
        self._unsent.append(HEADER.pack(ROUND, one.number, segment) + one.body)

    def _flush(self) -> None:
        """Send what waits, as far as there is room."""
        while self._unsent and self._channel is not None:
            message = self._unsent[0]
            self._sent = self._channel.send(message, self._sent)
            if self._sent < len(message):
                return
            self._unsent.popleft()
            self._sent = 0

    # --- the keeper -------------------------------------------------------------------------------

    def _keep(self) -> None:
        while not self._is_over:
            try:
                why = self._run_process()
            except Exception as error:  # for instance, no more descriptors
                why = f"it cannot be started: {error}"
            self._take_back(why)
        self._take_back("its system has stopped")

    def _run_process(self) -> str:
        """Start a process, and take its answers until it has ended. Returns how it ended."""
        descriptors: list[int] = []
        alive = -1
        try:
            memory = os.memfd_create("callboard", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            descriptors.append(memory)
            os.ftruncate(memory, memory_size(_CAPACITY))
            seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
            fcntl.fcntl(memory, fcntl.F_ADD_SEALS, seals)  # so that no process can take it away
            flags = os.EFD_CLOEXEC | os.EFD_NONBLOCK
            own = os.eventfd(0, flags)
            descriptors.append(own)
            other = os.eventfd(0, flags)
            descriptors.append(other)
            alive, childs = os.pipe()
            descriptors.append(childs)
            spec = {"memory": memory, "own": other, "other": own, "alive": childs}
            spec["capacity"] = _CAPACITY
            channel = ByteChannel(memory, _CAPACITY, own, other, True)
            process = child_process.start(
                "callboard.streams.processes.worker", spec, [memory, own, other, childs]
            )
            os.close(childs)
            os.close(memory)
            descriptors[:] = [own, other]
            with self._lock:
                self._process, self._channel = process, channel
                for one in self._rounds.values():
                    self._enqueue(one)
                self._flush()
            if self._is_over:  # meanwhile
                self.stop()
            self._take_answers(process, channel, alive)
            return self._end_of(process, channel)
        finally:
            with self._lock:
                self._channel = None
            for descriptor in (*descriptors, alive):
                if descriptor >= 0:
                    os.close(descriptor)

    def _take_answers(
        self, process: subprocess.Popen[bytes], channel: ByteChannel, alive: int
    ) -> None:
        """Take answers until the process has ended, or is to be ended."""
        has_ended = False
        while True:
            looked = channel.look()
            while (message := channel.receive()) is not None:
                self._note_answer(message)
            if has_ended or channel.is_broken:
                return
            with self._lock:
                self._flush()
                seconds = self._seconds_for_useless_work()
            if seconds is None:
                channel.wait(looked, alive)
            elif seconds > 0:
                channel.wait(looked, alive, int(seconds * 1000) + 1)
            else:
                process.kill()
                channel.wait(looked, alive, 100)
            has_ended = _is_closed(alive)

    def _seconds_for_useless_work(self) -> float | None:
        """Return how long a process may go on with a round of a run that has ended.

        None: it works on no such round. The caller has the lock.
        """
        first = next(iter(self._rounds.values()), None)
        if first is None or first.code.ended is None:
            return None
        return max(first.code.ended, self._answered) + _GRACE - time.monotonic()

    def _note_answer(self, message: bytes) -> None:
        (number,) = ANSWER.unpack_from(message)
        with self._lock:
            one = self._rounds.pop(number, None)
            self._ends = 0
            self._answered = time.monotonic()
        if one is not None:
            one.answer.set_result(message[ANSWER.size :])

    def _end_of(self, process: subprocess.Popen[bytes], channel: ByteChannel) -> str:
        if channel.is_broken:
            process.kill()
        try:
            status = process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            status = process.wait()
        if process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()
        if channel.is_broken:
            return "it wrote into shared memory what cannot be"
        return f"killed by signal {-status}" if status < 0 else f"exit status {status}"

    def _take_back(self, why: str) -> None:
        """Take back the rounds of a process that has ended.

        It was in the first of them. The others go to a process again.
        """
        with self._lock:
            rounds = [*self._rounds.values()]
            self._rounds.clear()
            self._unsent.clear()
            self._sent = 0
            self._known.clear()
            self._process = None
            if not self._is_over:
                self._ends += 1
                if self._ends > _MOST_ENDS:
                    self._is_over = True
            is_over, ends = self._is_over, self._ends
        if not self._processes.is_over:
            log.error("a worker process has ended", process=self._name, why=why)
        if rounds:
            text = f"the worker process {self._name!r} ended: {why}"
            rounds[0].answer.set_exception(ProcessLost(text))
        for one in rounds[1:]:
            self._processes.send_again(one, why)
        if not is_over and ends > 1:
            self._stopping.wait(min(_BACKOFF * 2 ** (ends - 2), _MOST_BACKOFF))


def _is_closed(alive: int) -> bool:
    """Return whether a process has ended; it writes nothing to this pipe."""
    return bool(select.select([alive], [], [], 0)[0])


class WorkerProcesses:
    """The worker processes of a system. Safe in every thread."""

    def __init__(self, name: str, count: int) -> None:
        self.count = count
        self.is_over = False
        self._numbers = itertools.count()
        self._places = [_WorkerProcess(self, f"{name}-process-{at}") for at in range(count)]

    def add(self, operators: bytes) -> Code:
        """Add a segment."""
        return Code(next(self._numbers), operators)

    def forget(self, code: Code) -> None:
        """Let the processes know that a segment's run has ended.

        A process that goes on with one of its rounds for long is ended.
        """
        code.ended = time.monotonic()
        for place in self._places:
            place.forget(code)

    def send(self, code: Code, body: bytes) -> Future[bytes]:
        """Send a round to the process with the fewest, and return a future of its answer.

        It fails with ProcessLost if the process ends while it works on the round.
        """
        one = _Round(next(self._numbers), code, body)
        self.send_again(one, "")
        return one.answer

    def send_again(self, one: _Round, why: str) -> None:
        """Send a round, also one whose process has ended before it began with it."""
        if one.code.ended is not None:
            one.answer.set_exception(CallboardError("the run has ended"))
            return
        for place in sorted(self._places, key=lambda place: place.waiting):
            if place.send(one):
                return
        error = CallboardError(
            "the system has stopped its worker processes"
            if self.is_over
            else f"no worker process is left: {_MOST_ENDS + 1} ended without an answer; {why}"
        )
        one.answer.set_exception(error)

    def stop(self) -> None:
        """End the processes, and wait for that."""
        self.is_over = True
        for place in self._places:
            place.stop()
        for place in self._places:
            place.join()


class ProcessKeeper(Actor[Any]):
    """Ends the worker processes of a system when that stops."""

    def __init__(self, processes: WorkerProcesses) -> None:
        self._processes = processes

    def receive(self, message: Any) -> None:
        """Take no message."""

    def on_stop(self) -> None:
        """End the processes."""
        self._processes.stop()


_of_systems: weakref.WeakKeyDictionary[ActorSystem, WorkerProcesses] = weakref.WeakKeyDictionary()
_starting = threading.Lock()


def processes_of(system: ActorSystem) -> WorkerProcesses:
    """Return the worker processes of a system, and start them for its first graph."""
    with _starting:
        found = _of_systems.get(system)
        if found is None:
            found = WorkerProcesses(system.name, system.config.processes)
            try:
                system.spawn(ProcessKeeper, found, dedicated=True, name="worker-processes")
            except BaseException:
                found.stop()
                raise
            _of_systems[system] = found
        return found
