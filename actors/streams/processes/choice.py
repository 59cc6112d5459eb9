"""The choice of `processes="auto"`: whether the rounds of a segment go to worker processes.

A row takes `w` here, by the processor time of the functions, and `h` is the time of the program for
its hand-over, which costs the process about as much. With c cores, a row therefore takes about
max(h, (w + 2h) / c) in processes. Rounds go there if that is clearly less than w, and come back if
it is more. Both times are measured: w in each round, and h in each hand-over, or in trials here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from callboard._inside.answers.future import Future
from callboard.streams.processes.segments import Request, Segment
from callboard.streams.processes.work import LocalWork, Outcome
from callboard.streams.programs.program import Batch, Program
from callboard.worker_processes.pickling import loads, parts_of
from callboard.worker_processes.processes import WorkerProcesses

if TYPE_CHECKING:
    from callboard.worker_processes.message_blocks import Parts

_CLEARLY = 0.85  # of the time here, for rounds to go to the processes
_FADES = 0.75  # the weight of what was measured before a round
_EACH = 32  # rounds here, for one trial of a hand-over
_FIRST = 16  # rounds with a trial each
_PER_ROUND = 60_000  # nanoseconds of a hand-over beside the encoding: wake-ups of threads
_WAITS = 4  # times as long as its processor time: such a function waits for something


class ChosenSegment(Segment):
    """A segment that runs in the program or in worker processes, whichever is faster."""

    chooses = True

    def __init__(
        self,
        processes: WorkerProcesses,
        operators: bytes,
        makers: Sequence[Callable[[], Program]],
        cores: int,
    ) -> None:
        super().__init__(processes, operators)
        self.is_here = True
        """Whether further rounds run in the program."""
        self._local = LocalWork([make() for make in makers])
        self._cores = cores
        self._work = _Mean()  # nanoseconds for each row, as is the next
        self._encoding = _Mean()
        self._size = _Mean()  # rows of a round
        self._rounds = 0  # that ran here
        self._stays = ""  # why they will always do

    @property
    def where(self) -> str:  # type: ignore[override]
        """The place of the operators, for statistics."""
        return "" if self.is_here else Segment.where

    @property
    def reason(self) -> str:  # type: ignore[override]
        """The reason for that place."""
        if self._stays or not self._encoding.count:
            return self._stays
        work, hand_over = self._work.value / 1000, self._hand_over() / 1000
        return f"{work:.2g} us of work a row, {hand_over:.2g} us for its hand-over"

    def run_here(self, batch: Batch, /) -> Outcome:
        """Run a round in the program."""
        outcome = self._local.run(batch)
        self._rounds += 1
        if not self._stays:
            self._note_work(outcome)
            if self._rounds < _FIRST or self._rounds % _EACH == 0:
                self._try_hand_over(batch, outcome)
            self._choose()
        return outcome

    def encode(self, batch: Batch, fails: bool, /) -> Request | None:  # type: ignore[override]
        """Encode a round. None: it has to run here, since a row cannot be pickled."""
        begun = time.thread_time_ns()
        request = super().encode(batch, fails)
        self._note_hand_over(2 * (time.thread_time_ns() - begun), len(batch.rows))
        if request[1] is not None:
            self._stay("a row cannot be pickled")
            return None
        return request

    def send(self, request: Request, /) -> Future[Parts]:
        """Send a round to a process."""
        begun = time.thread_time_ns()
        answer = super().send(request)
        self._encoding.total += 2 * (time.thread_time_ns() - begun)  # of the rows that were encoded
        return answer

    def decode(self, answer: Parts, /) -> Outcome | None:  # type: ignore[override]
        """Decode what a process made of a round. None: it has to run here."""
        outcome = super().decode(answer)
        if outcome[-1] < 0:
            self._stay("an output cannot be pickled")
            return None
        if not self._stays:
            self._note_work(outcome)
            self._choose()
        return outcome

    def close(self) -> None:
        """Let the processes forget the segment, and close the operators."""
        super().close()
        self._local.close()

    def _stay(self, why: str) -> None:
        self.is_here, self._stays = True, why

    def _choose(self) -> None:
        if not self._encoding.count:
            return
        work, hand_over = self._work.value, self._hand_over()
        there = max(hand_over, (work + 2 * hand_over) / self._cores)
        self.is_here = there > work * (_CLEARLY if self.is_here else 1)

    def _hand_over(self) -> float:
        return self._encoding.value + _PER_ROUND / self._size.value

    def _try_hand_over(self, batch: Batch, outcome: Outcome) -> None:
        """Measure a hand-over without one."""
        begun = time.thread_time_ns()
        try:
            parts = parts_of((batch.rows, batch.lineages, outcome[0]))
            b"".join(parts)  # large parts are copied
            loads(parts)
        except Exception:
            self._stay("a row or an output cannot be pickled")
            return
        self._note_hand_over(time.thread_time_ns() - begun, len(batch.rows))

    def _note_hand_over(self, nanoseconds: int, rows: int) -> None:
        if rows:
            self._encoding.add(nanoseconds, rows)
            self._size.add(rows, 1)

    def _note_work(self, outcome: Outcome) -> None:
        _, _, counts, _, spent = outcome
        rows = counts[0][0]
        elapsed = sum(count[-1] for count in counts)
        if rows:
            self._work.add(elapsed if elapsed > _WAITS * spent else spent, rows)


class _Mean:
    """The mean of the latest measurements, each of `count` rows or rounds."""

    def __init__(self) -> None:
        self.total = self.count = 0.0

    @property
    def value(self) -> float:
        return self.total / self.count

    def add(self, total: float, count: int) -> None:
        self.total = _FADES * self.total + total
        self.count = _FADES * self.count + count
