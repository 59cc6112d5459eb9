"""The choice of `processes="auto"` for an operator with a state, which moves with it.

The stream waits for a move: the state is encoded, and decoded elsewhere. So what the other place
would have saved is added up, and the operator moves when that is more than a move costs. Each
return to the program doubles the sum for the next move. It also returns if its rows come no faster
from the processes: see rate_trial.py.

One state in one process, or keys most of which are equal, do not run side by side. `s` is the share
of rows of the process that has most of them, and `p` the processor time of the whole program for a
row of the operator. A row takes about p here, and max(p - w + h, s (w + h), (p + 2h) / c) there;
see choice.py for the others. So an operator with one state leaves a program that has other work.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from callboard._inside.answers.future import Future
from callboard.core.text import safe_str
from callboard.streams.processes.choice import SegmentChoice
from callboard.streams.processes.segments import Segment, State, StatefulSegment, States, check
from callboard.streams.processes.work import clocks, working_time
from callboard.worker_processes.choice import CLEARLY, Mean
from callboard.worker_processes.pickling import dumps, loads, parts_of

if TYPE_CHECKING:
    from callboard.worker_processes.message_blocks import Parts

_LEAST_COST = 20_000_000  # nanoseconds that a move costs, whatever the size of the state
_TIMES = 4  # its encoding, the decoding, and the same when it returns


class ChosenStates(SegmentChoice):
    """The states of an operator, in the program or in `count` worker processes.

    `make` makes them for a stay in the processes; it sends nothing. A program of the class
    ChosenState moves the states when `is_here` has changed.
    """

    def __init__(
        self, make: Callable[[], States | StatefulSegment], count: int, cores: int
    ) -> None:
        super().__init__(cores)
        self.count = self._requests = count
        self.refused = False
        """Whether a row could not be pickled; the program resets it."""
        self.stays_away = False
        """Whether the states cannot return."""
        self._make = make
        self._first = make()  # encodes rounds, and is tried before the first move
        self._now: States | StatefulSegment | None = None  # while the states are in processes
        self._is_away = False
        self._answers: Sequence[Future[Parts]] = ()  # that are to be decoded
        self._has_tried = False
        self._encoded: list[bytes] = []
        self._share = Mean()
        self._program = Mean()  # nanoseconds of processor time, for each row of the operator
        self._clock = Mean()  # the same by the clock
        self._looked = (0, 0)  # the clocks at the last look
        self._begun = clocks()  # of a round here
        self._worked = 0  # nanoseconds of functions in processes, of a round
        self._saved = 0.0  # nanoseconds that the other place would have saved
        self._cost = _LEAST_COST
        self._bytes = self._moves = self._returns = 0

    @property
    def where(self) -> str:
        """The place of the operator, for statistics."""
        return Segment.where if self._is_away else ""

    @property
    def reason(self) -> str:
        """The reason for that place."""
        reason = super().reason
        if self._stays or not self._is_measured():
            return reason
        here, there = (nanoseconds / 1000 for nanoseconds in self._times())
        reason += f"; {here:.2g} us in the program, {there:.2g} us in processes"
        if self._moves:
            moved = "once" if self._moves == 1 else f"{self._moves} times"
            reason += f"; a state of {self._bytes:,} bytes has moved {moved}"
        return reason

    # --- moves ------------------------------------------------------------------------------------

    def go(self, give: Callable[[], None], /) -> list[Future[Parts]]:
        """Begin to move the states to the processes; `give()` passes them to restore().

        Returns futures for has_gone(). Without any, the states stay here.
        """
        try:
            if not self._may_go() or (encoded := self._encoded_by(give)) is None:
                return []
            self._now = self._make()
            return self._now.begin_with(encoded)
        except Exception as error:  # for instance, the system has stopped its processes
            self._forget()
            self._stay(f"the processes cannot be used: {safe_str(error)}")
            return []

    def restore(self, states: Sequence[State], /) -> None:
        """Encode the states for the processes."""
        self._encoded = [dumps(state) for state in states]

    def has_gone(self, answers: Sequence[Future[Parts]], /) -> bool:
        """Return whether the processes have begun with the states. False: they stay here."""
        if error := _error_of(answers):
            self._forget()
            self._stay(f"a process cannot begin with the state: {safe_str(error)}")
            return False
        self._note_move(True)
        return True

    def fetch(self) -> list[Future[Parts]]:
        """Ask for the states, while no round is on its way. The answers are for come_back()."""
        assert self._now is not None
        return self._now.fetch()

    def come_back(self, answers: Sequence[Future[Parts]], take: Callable[[], None], /) -> bool:
        """Return with the states; `take()` gets them by snapshots(). False: they stay there."""
        self._answers = answers
        try:
            take()
        except Exception as error:
            self.is_here, self.stays_away = False, True
            self._stays = f"the state cannot return: {safe_str(error)}"
            return False
        self._forget()
        self._returns += 1
        self._note_move(False)
        return True

    def snapshots(self) -> list[State]:
        """Return the states in processes: those that were fetched; or for a snapshot, these now."""
        assert self._now is not None
        answers, self._answers = self._answers, ()
        if answers:
            return self._now.decode_all([answer.result() for answer in answers])
        return self._now.snapshots()

    def close(self) -> None:
        """Let the processes forget the states."""
        self._forget()
        self._first.close()

    def _encoded_by(self, give: Callable[[], None]) -> list[bytes] | None:
        """Return the encoded states, and note what a move costs. None: they stay here for now."""
        begun = time.thread_time_ns()
        try:
            give()
        except Exception as error:
            self._stay(f"the state cannot be pickled: {safe_str(error)}")
            return None
        encoded, self._encoded = self._encoded, []
        self._bytes = sum(map(len, encoded))
        self._cost = max(_LEAST_COST, _TIMES * (time.thread_time_ns() - begun))
        if self._saved < self._least():
            self.is_here = True
            return None
        return encoded

    def _may_go(self) -> bool:
        """Return whether the processes have the operator. They start while rounds run here."""
        if self._has_tried:
            return True
        if not self._answers:
            self._answers = self._first.checks()
        if not all(answer.done() for answer in self._answers):
            return False
        answers, self._answers = self._answers, ()
        self._first.close()
        self._has_tried = True
        if error := _error_of(answers):
            self._stay(f"a process cannot have the operator: {safe_str(error)}")
            return False
        self.is_here = True  # for now: the start of processes has slowed rows down
        self._trial.restart()
        return False

    def _forget(self) -> None:
        if self._now is not None:
            self._now.close()
            self._now = None

    def _note_move(self, is_away: bool) -> None:
        self._is_away = is_away
        self._moves += 1
        self._saved = 0.0
        self._look()

    # --- rounds in processes ----------------------------------------------------------------------

    def encode(self, *round_or_part: Any) -> Any:
        """Encode a round, or the part of one for a process."""
        try:
            encoded: Any = self._first.encode(*round_or_part)
        except Exception:
            self.refused = True
            raise
        if isinstance(encoded, tuple) and encoded[1] is not None:
            self.refused = True
        return encoded

    def send(self, request: Any, /) -> Future[Parts]:
        """Send what was encoded."""
        assert self._now is not None
        return self._now.send(request)

    def decode(self, answer: Parts, /) -> Any:
        """Decode an answer, and note the time of the functions."""
        decoded = self._first.decode(answer)
        self._worked += max(decoded[-1], 0)
        return decoded

    def is_lost(self, error: BaseException | None, /) -> bool:
        """Return False: a round with a state goes to one process only."""
        return False

    def at_work(self) -> list[str]:
        """Name the processes that work on rounds of the operator."""
        now = self._now
        return [] if now is None else now.at_work()

    # --- costs ------------------------------------------------------------------------------------

    def begin_here(self) -> None:
        """Note that a round begins to run here."""
        self._begun = clocks()

    def note_here(self, rows: int) -> bool:
        """Note a round that ran here. Returns whether to try its hand-over: see note_trial()."""
        if self._stays:
            return False
        self._note_work(working_time(self._begun, rows), rows)
        self._note_program(rows)
        self._trial.note(False, rows)
        return self._tries_hand_over()

    def note_trial(self, spent: int, rows: int, outputs: Any) -> None:
        """Note the encoding of a round that was not sent, and try the same with its outputs."""
        if self.refused:
            self.note_refused()
            return
        begun = time.thread_time_ns()
        try:
            loads(parts_of(outputs))
        except Exception:
            self._stay("an output cannot be pickled")
            return
        self._note_hand_over(spent + time.thread_time_ns() - begun, rows)
        self._look()

    def note_share(self, most: int, rows: int) -> None:
        """Note that one process gets the most of a round's rows."""
        if rows:
            self._share.add(most, rows)

    def note_away(self, spent: int, rows: int) -> None:
        """Note a round that ran in processes, and the time of its hand-over in the program."""
        self._note_work(self._worked, rows)
        self._worked = 0
        self._note_hand_over(spent, rows)
        self._note_program(rows)
        self._trial.note(True, rows)

    def note_refused(self) -> None:
        """Note that a row cannot be pickled."""
        self.refused = False
        if not self.stays_away:
            self._stay("a row or a key cannot be pickled")

    def choose(self, rows: int) -> None:
        """Choose the place of further rounds, after one with so many rows."""
        if not self._stays and rows:
            self._compare(rows)

    def _compare(self, rows: int) -> None:
        if not self._is_measured():
            return
        here, there = self._times()
        if self._is_away:
            saved, is_better = there - here, here < there
        else:
            saved, is_better = here - there, there < CLEARLY * here
        self._saved = max(0.0, self._saved + saved * rows)
        if self._trial.has_lost(there / here):
            self.is_here = True
        elif not is_better:
            self.is_here = not self._is_away
        elif self._saved >= self._least() and (self._is_away or self._trial.is_due(there / here)):
            self.is_here = self._is_away

    def _least(self) -> float:
        """Return how much a move has to save."""
        return self._cost * 2.0**self._returns

    def _is_measured(self) -> bool:
        return all((self._work.count, self._encoding.count, self._share.count, self._program.count))

    def _times(self) -> tuple[float, float]:
        """Return the nanoseconds that a row takes here, and in processes."""
        work, hand_over, program = self._work.value, self._hand_over(), self._program.value
        threads = max(1.0, program / self._clock.value)  # that work side by side in the program
        if self._is_away:
            program += work - hand_over
        here = max(program / threads, work)
        there = max(
            here - work + hand_over,
            self._share.value * (work + hand_over),
            (program + 2 * hand_over) / self._cores,
        )
        return here, there

    def _note_program(self, rows: int) -> None:
        """Note the time that has passed since the last look."""
        if not rows:
            return
        (processor, clock), had_looked = self._looked, self._looked != (0, 0)
        self._look()
        if had_looked:
            self._program.add(self._looked[0] - processor, rows)
            self._clock.add(max(1, self._looked[1] - clock), rows)

    def _look(self) -> None:
        self._looked = time.process_time_ns(), time.monotonic_ns()


def _error_of(answers: Sequence[Future[Parts]]) -> BaseException | None:
    """Return why a process cannot have an operator or its state, if there is a reason."""
    try:
        for answer in answers:
            check(answer.result())
    except Exception as error:
        return error
    return None
