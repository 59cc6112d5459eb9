"""Segments of `processes="auto"`, which run in the program or in worker processes.

See `worker_processes.choice` for the rule, and rate_trial.py for what it leaves open.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from callboard._inside.answers.future import Future
from callboard.streams.processes.rate_trial import RateTrial
from callboard.streams.processes.segments import Request, Segment
from callboard.streams.processes.work import LocalWork, Outcome
from callboard.streams.programs.program import Batch, Program
from callboard.worker_processes.choice import PlaceChoice
from callboard.worker_processes.pickling import loads, parts_of
from callboard.worker_processes.processes import WorkerProcesses

if TYPE_CHECKING:
    from callboard.worker_processes.message_blocks import Parts

_EACH = 32  # rounds here, for one trial of a hand-over
_FIRST = 16  # rounds with a trial each


class SegmentChoice(PlaceChoice):
    """The measured costs of rows, and the place that was chosen for them."""

    def __init__(self, cores: float) -> None:
        super().__init__(cores)
        self._rounds = 0  # that ran here
        self._trial = RateTrial()

    @property
    def where(self) -> str:
        """The place of the operators, for statistics."""
        return "" if self.is_here else Segment.where

    @property
    def reason(self) -> str:
        """The reason for that place."""
        reason = super().reason
        return reason if self._stays or not reason else reason + self._trial.result

    def _tries_hand_over(self) -> bool:
        """Return whether a hand-over is to be tried after a round that ran here."""
        self._rounds += 1
        return not self._stays and (self._rounds < _FIRST or self._rounds % _EACH == 0)


class ChosenSegment(SegmentChoice, Segment):  # type: ignore[override]
    """A segment that runs in the program or in worker processes, whichever is faster."""

    def __init__(
        self,
        processes: WorkerProcesses,
        operators: bytes,
        makers: Sequence[Callable[[], Program]],
        cores: int,
    ) -> None:
        Segment.__init__(self, processes, operators)
        SegmentChoice.__init__(self, cores)
        self._local = LocalWork([make() for make in makers])

    def run_here(self, batch: Batch, /) -> Outcome:
        """Run a round in the program."""
        outcome = self._local.run(batch)
        if not self._stays:
            self._note_work(outcome[-1], rows := outcome[2][0][0])
            self._trial.note(False, rows)
            if self._tries_hand_over():
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
            self._note_work(outcome[-1], rows := outcome[2][0][0])
            self._trial.note(True, rows)
            self._choose()
        return outcome

    def close(self) -> None:
        """Let the processes forget the segment, and close the operators."""
        super().close()
        self._local.close()

    def _keeps_here(self, ratio: float) -> bool:
        return self._trial.keeps_here(self.is_here, ratio)

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
        both_sides = time.thread_time_ns() - begun
        self._note_hand_over(both_sides // 2, len(batch.rows))
