"""A place for a worker process, and the segments and rounds that are sent there."""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Container, Iterator
from typing import TYPE_CHECKING, Protocol

from callboard._inside.answers.future import Future
from callboard.core.log import log
from callboard.mailbox.shared.byte_channel import ByteChannel
from callboard.mailbox.shared.process_channel import ProcessChannel
from callboard.scheduling.monitor import ProcessStatistics
from callboard.scheduling.tracing.formats import ProcessWork
from callboard.worker_processes.errors import ProcessLost
from callboard.worker_processes.message_blocks import MessageBlocks, make_blocks
from callboard.worker_processes.pickling import loads
from callboard.worker_processes.worker import (
    ANSWER,
    END,
    HEADER,
    LOG,
    OPERATORS,
    RESTORE,
    ROUND,
    TIMED,
    WORK,
)

if TYPE_CHECKING:
    from callboard.worker_processes.message_blocks import Parts

_MODULE = "callboard.worker_processes.worker"
_LARGEST_RING = 1 << 20  # bytes
_PAGE = 4096
# Processes that may end one after the other without an answer, before no further one is started.
MOST_ENDS = 10
# Errors of what the operating system, or the container, does not have.
_FORBIDDEN = (errno.ENOSYS, errno.EPERM)
# Seconds before a process is started in the place of one that never answered; then twice as long.
_BACKOFF = 0.05
_MOST_BACKOFF = 2.0
# Seconds in which a process may end by itself, or end a round of a run that has ended.
_GRACE = 2.0
# Bytes of rounds that are kept for each state, to be repeated after the end of its process.
_MOST_KEPT = 64 << 20
# Processes that may end with the same round of an operator with a state.
_MOST_TRIES = 9


class Code:
    """The encoded operators of a segment."""

    def __init__(self, number: int, operators: bytes) -> None:
        self.number = number
        self.operators = operators
        self.ended: float | None = None
        """When its run ended, on the monotonic clock."""


class StateCode(Code):
    """That of an operator whose state is in the process of one place.

    The next process there gets the state of the last snapshot, and the rounds since then, which are
    kept. The lock of the place guards all of this.
    """

    def __init__(self, number: int, operators: bytes, place: int) -> None:
        super().__init__(number, operators)
        self.place = place
        self.lost = ""
        """Why the state is lost."""
        self._base: bytes | None = None  # the state of the last snapshot
        self._kept: list[tuple[int, Parts]] = []  # since then: the numbers and rows of rounds
        self._size = 0  # of these, in bytes; more than _MOST_KEPT: they are not all there

    @property
    def is_kept(self) -> bool:
        """Whether the state can be made again."""
        return self._size <= _MOST_KEPT

    def begin_with(self, state: bytes) -> None:
        """Note the state at this moment."""
        self._base = state
        self._kept.clear()
        self._size = 0

    def keep(self, one: Round) -> None:
        """Keep a round that is about to be sent."""
        self._size += sum(memoryview(part).nbytes for part in one.parts)
        if self.is_kept:
            self._kept.append((one.number, one.parts))
        else:
            self._kept.clear()
            self._base = None

    def again(self, unanswered: Container[int], blocks: MessageBlocks) -> Iterator[bytes]:
        """Return the messages that make the state again, up to a round without an answer."""
        if self._base is not None:
            yield blocks.message(HEADER.pack(RESTORE, 0, self.number), [self._base])
        for number, parts in self._kept:
            if number in unanswered:
                break
            yield blocks.message(HEADER.pack(ROUND, number, self.number), parts)


class Round:
    """A round that a process is to answer, with its rows' own buffers; or another request."""

    def __init__(self, number: int, code: Code, parts: Parts, kind: int = ROUND) -> None:
        self.number = number
        self.code = code
        self.parts = parts
        self.kind = kind
        self.tries = 0
        self.answer: Future[Parts] = Future()

    def message(self, blocks: MessageBlocks, *, timed: bool) -> bytes:
        """Return its message, with large parts in blocks."""
        kind = self.kind | TIMED if timed and self.kind == ROUND else self.kind
        return blocks.message(HEADER.pack(kind, self.number, self.code.number), self.parts)


class WorkTraces(Protocol):
    """The traces of a system."""

    @property
    def is_recording(self) -> bool:
        """Whether anything is recorded."""

    def note_work(self, one: ProcessWork) -> None:
        """Record a round of a worker process."""


class AllProcesses(Protocol):
    """The worker processes of a system, as one of their places needs them."""

    is_over: bool
    shared_memory: int
    traces: WorkTraces | None

    def send_again(self, one: Round) -> None:
        """Send a round, also one whose process has ended before it began with it."""


class ProcessPlace:
    """One place: a process, and after its end the next one.

    Its own thread, the keeper, receives the answers. Any thread sends. Messages that find no room
    in the shared memory wait here.
    """

    def __init__(self, processes: AllProcesses, name: str) -> None:
        self._processes = processes
        self._name = name
        self._lock = threading.Lock()
        self._rounds: dict[int, Round] = {}  # without an answer, in the order of sending
        self._unsent: deque[bytes] = deque()
        self._sent = 0  # bytes of the first of these
        self._known: dict[int, Code] = {}  # the segments that the process has
        self._process: ProcessChannel | None = None
        self._blocks: MessageBlocks | None = None  # as long as there is a process
        self._is_over = False
        self._stopping = threading.Event()
        self._stopped = 0.0  # when stop() was called
        self._ends = 0  # one after the other, without an answer
        self._all_ends = 0
        self._done = 0
        self.last_end = ""
        """How the latest process ended."""
        # Processor time, and bytes in each direction, of processes that have ended.
        self._used_before = 0.0, 0, 0
        self._answered = 0.0  # the time of the latest answer
        self._keeper = threading.Thread(target=self._keep, name=name, daemon=True)
        self._keeper.start()

    @property
    def waiting(self) -> int:
        """The number of rounds without an answer."""
        return len(self._rounds)

    def send(self, one: Round) -> bool:
        """Send a round. False: no process is started here any more."""
        code = one.code
        with self._lock:
            if self._is_over:
                return False
            lost = code.lost if isinstance(code, StateCode) else ""
            if not lost:
                if isinstance(code, StateCode) and one.kind == ROUND:
                    code.keep(one)
                self._rounds[one.number] = one
                if self._process is not None:
                    self._enqueue(one)
                    self._flush()
        if lost:
            one.answer.set_exception(ProcessLost(lost))
        return True

    def begin_with(self, code: StateCode, state: bytes) -> None:
        """Note a state, while no round of it is on its way."""
        with self._lock:
            code.begin_with(state)

    def figures(self) -> ProcessStatistics:
        """Return the figures of the process, and of those before it."""
        with self._lock:
            busy, sent, received = self._used()
            return ProcessStatistics(
                name=self._name,
                pid=None if self._process is None else self._process.process.pid,
                done=self._done,
                waiting=len(self._rounds),
                busy=busy,
                sent=sent,
                received=received,
                ends=self._all_ends,
                started=self._done > 0,
            )

    def is_at(self, codes: Container[Code]) -> str:
        """Name the process, if it works on a round of these segments; else nothing."""
        with self._lock:
            first = next(iter(self._rounds.values()), None)
            if first is None or first.code not in codes or self._process is None:
                return ""
            return f"{self._name} (process {self._process.process.pid})"

    def forget(self, code: Code) -> None:
        """Let the process know that a segment's run has ended."""
        with self._lock:
            if self._known.pop(code.number, None) is not None:
                self._unsent.append(HEADER.pack(END, 0, code.number))
                self._flush()
                if self._blocks is not None:
                    self._blocks.trim()
            if self._process is not None:
                self._process.channel.wake()  # the keeper may have to end the process

    def stop(self) -> None:
        """Have the process end."""
        self._stopping.set()
        with self._lock:
            self._stopped = time.monotonic()
            self._is_over = True
            if self._process is not None:
                self._process.channel.wake()
                self._process.want_end()

    def join(self) -> None:
        """Wait until it has ended."""
        self._keeper.join()

    # --- with the lock ----------------------------------------------------------------------------

    def _used(self) -> tuple[float, int, int]:
        busy, sent, received = self._used_before
        if self._process is not None and self._blocks is not None:
            busy += self._process.busy()
            sent += self._blocks.sent
            received += self._blocks.received
        return busy, sent, received

    def _enqueue(self, one: Round) -> None:
        code, blocks = one.code, self._blocks
        assert blocks is not None
        if code.number not in self._known:
            self._known[code.number] = code
            self._unsent.append(HEADER.pack(OPERATORS, 0, code.number) + code.operators)
            if isinstance(code, StateCode):
                self._unsent.extend(code.again(self._rounds, blocks))
        traces = self._processes.traces
        timed = traces is not None and traces.is_recording
        self._unsent.append(one.message(blocks, timed=timed))

    def _flush(self) -> None:
        """Send what waits, as far as there is room."""
        while self._unsent and self._process is not None:
            message = self._unsent[0]
            self._sent = self._process.channel.send(message, self._sent)
            if self._sent < len(message):
                return
            self._unsent.popleft()
            self._sent = 0

    # --- the keeper -------------------------------------------------------------------------------

    def _keep(self) -> None:
        while not self._is_over:
            is_forbidden = False
            try:
                why = self._run_process()
            except Exception as error:  # for instance, no more descriptors
                why = f"it cannot be started: {error}"
                is_forbidden = isinstance(error, OSError) and error.errno in _FORBIDDEN
            if not self._processes.is_over:
                log.error("a worker process has ended", process=self._name, why=why)
            self.last_end = why
            self._is_over = self._is_over or is_forbidden
            self._take_back(why)
        self._take_back("its system has stopped")

    def _run_process(self) -> str:
        """Start a process, and take its answers until it has ended. Returns how it ended."""
        regions: list[int] = []
        try:
            ring, pages = _divided(self._processes.shared_memory)
            blocks, spec = make_blocks(pages, regions)
            started = ProcessChannel(_MODULE, {**spec, "levels": _levels()}, ring, regions)
        finally:
            for descriptor in regions:
                os.close(descriptor)
        try:
            with self._lock:
                self._process, self._blocks = started, blocks
                for one in self._rounds.values():
                    self._enqueue(one)
                self._flush()
            if self._is_over:  # meanwhile
                self.stop()
            self._take_answers(started, blocks)
            return started.wait(_GRACE)
        finally:
            with self._lock:
                self._used_before = self._used()
                self._process = self._blocks = None
            started.close()

    def _take_answers(self, started: ProcessChannel, blocks: MessageBlocks) -> None:
        """Take answers until the process has ended, or is to be ended."""
        channel, alive = started.channel, started.alive
        has_ended = False
        while True:
            looked = channel.look()
            while (message := channel.receive()) is not None:
                self._note_answer(message, channel, blocks)
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
                started.process.kill()
                channel.wait(looked, alive, 100)
            has_ended = started.has_ended()

    def _seconds_for_useless_work(self) -> float | None:
        """Return how long a process may go on with a round of a run, or a system, that has ended.

        None: it works on no such round. The caller has the lock.
        """
        if self._stopped:
            return self._stopped + _GRACE - time.monotonic()
        first = next(iter(self._rounds.values()), None)
        if first is None or first.code.ended is None:
            return None
        return max(first.code.ended, self._answered) + _GRACE - time.monotonic()

    def _note_answer(self, message: bytes, channel: ByteChannel, blocks: MessageBlocks) -> None:
        try:
            parts = blocks.parts(message, ANSWER.size)
        except ValueError:
            channel.mark_broken()
            return
        (number,) = ANSWER.unpack_from(message)
        if number == LOG:
            self._note_log(parts)
            return
        if number == WORK:
            self._note_work(parts, channel)
            return
        with self._lock:
            one = self._rounds.pop(number, None)
            self._done += one is not None
            self._ends = 0
            self._answered = time.monotonic()
        if one is not None:
            one.answer.set_result(parts)

    def _note_work(self, parts: Parts, channel: ByteChannel) -> None:
        """Show a round in traces."""
        process, traces = self._process, self._processes.traces
        if process is None or traces is None:
            return
        try:
            work = ProcessWork(self._name, process.process.pid, *loads(parts))
        except Exception:
            channel.mark_broken()
            return
        traces.note_work(work)

    def _note_log(self, parts: Parts) -> None:
        """Log a record of the process here."""
        try:
            record: logging.LogRecord = loads(parts)
            record.processName = self._name
            logger = logging.getLogger(record.name)
            if logger.isEnabledFor(record.levelno):
                logger.handle(record)
        except Exception as error:  # of a handler of the program
            log.error("a record of a worker process cannot be logged", exc_info=error)

    def _take_back(self, why: str) -> None:
        """Take back the rounds of a process that has ended.

        It was in the first of them. Rounds of states stay here, if the next process can have the
        state. The others go to a process again.
        """
        text = f"the worker process {self._name!r} ended: {why}"
        with self._lock:
            if not self._is_over:
                self._ends += 1
                self._all_ends += 1
                if self._ends > MOST_ENDS:
                    self._is_over = True
            is_over, ends = self._is_over, self._ends
            for code in self._known.values():
                if isinstance(code, StateCode) and not code.is_kept:
                    code.lost = (
                        f"{text}; a state was in it, and more than {_MOST_KEPT >> 20} MiB of its "
                        "rows are in no snapshot"
                    )
            rounds = [*self._rounds.values()]
            if rounds:
                self._count_try(rounds[0], text)
            self._rounds = {one.number: one for one in rounds if not is_over and self._stays(one)}
            self._unsent.clear()
            self._sent = 0
            self._known.clear()
            rounds = [one for one in rounds if one.number not in self._rounds]
        for one in rounds:
            if isinstance(one.code, StateCode):
                one.answer.set_exception(ProcessLost(one.code.lost or text))
            elif one.tries:
                one.answer.set_exception(ProcessLost(text))
            else:
                self._processes.send_again(one)
        if not is_over and ends > 1:
            self._stopping.wait(min(_BACKOFF * 2 ** (ends - 2), _MOST_BACKOFF))

    def _count_try(self, one: Round, text: str) -> None:
        one.tries += 1
        if isinstance(one.code, StateCode) and one.tries >= _MOST_TRIES:
            one.code.lost = one.code.lost or f"{_MOST_TRIES} processes ended with a round; {text}"

    def _stays(self, one: Round) -> bool:
        return isinstance(one.code, StateCode) and not one.code.lost


def _divided(shared_memory: int) -> tuple[int, int]:
    """Return the size of a ring, which is a power of two, and the pages of blocks beside it."""
    each = shared_memory // 2
    ring = min(_LARGEST_RING, 1 << (each // 4).bit_length() - 1)
    return ring, (each - ring) // _PAGE


def _levels() -> dict[str, int]:
    """Return the levels of the program's loggers, by their names; that of the root has none."""
    loggers = {"": logging.getLogger(), **logging.root.manager.loggerDict}
    return {
        name: logger.level
        for name, logger in loggers.items()
        if isinstance(logger, logging.Logger) and logger.level
    }
