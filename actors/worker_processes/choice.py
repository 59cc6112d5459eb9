"""The choice of `processes="auto"`: whether functions are called in the program or in processes.

A row takes `w` here, by the working time of the functions, and `h` is the time of the program for
its hand-over, which costs the process about as much. With c cores, a row therefore takes about
max(h, (w + 2h) / c) in processes. Rows go there if that is clearly less than w, and come back if it
is more. Both times are measured: w in each round, and h in each hand-over, or in trials here.
"""

from __future__ import annotations

CLEARLY = 0.85  # of the time here, for rows to go to the processes
_FADES = 0.75  # the weight of what was measured before a round
WAITS = 4  # times as long as its processor time: such a function waits for something


class PlaceChoice:
    """Where functions are called, by what their calls and hand-overs of rows take."""

    _PER_ROUND = 60_000  # nanoseconds of a hand-over beside the encoding: wake-ups of threads

    def __init__(self, cores: float) -> None:
        self.is_here = True
        """Whether further rows stay in the program."""
        self._cores = cores
        self._work = Mean()  # nanoseconds for each row, as is the next
        self._encoding = Mean()
        self._size = Mean()  # rows of a round
        self._requests = 1  # of a round, each to another process
        self._stays = ""  # why they will always do

    @property
    def reason(self) -> str:
        """The reason for the place, for statistics."""
        if self._stays or not self._encoding.count or not self._work.count:
            return self._stays
        work, hand_over = self._work.value / 1000, self._hand_over() / 1000
        return f"{work:.2g} us of work a row, {hand_over:.2g} us for its hand-over"

    def _stay(self, why: str) -> None:
        """Stay in the program, from now on."""
        self.is_here, self._stays = True, why

    def _choose(self) -> None:
        if not self._encoding.count or not self._work.count:
            return
        work, hand_over = self._work.value, self._hand_over()
        there = max(hand_over, (work + 2 * hand_over) / self._cores)
        self.is_here = self._keeps_here(there / max(1, work))

    def _keeps_here(self, ratio: float) -> bool:
        """Return whether rows stay, by the time of one in processes, as a multiple of that here."""
        return ratio > (CLEARLY if self.is_here else 1)

    def _hand_over(self) -> float:
        return self._encoding.value + self._requests * self._PER_ROUND / self._size.value

    def _note_hand_over(self, nanoseconds: float, rows: int) -> None:
        if rows:
            self._encoding.add(nanoseconds, rows)
            self._size.add(rows, 1)

    def _note_work(self, nanoseconds: float, rows: int) -> None:
        if rows:
            self._work.add(nanoseconds, rows)


def working(elapsed: float, spent: float) -> float:
    """Return the working time of functions: their processor time, or all of it if they wait."""
    return elapsed if elapsed > WAITS * spent else spent


class Mean:
    """The mean of the latest measurements, each of `count` rows or rounds."""

    def __init__(self) -> None:
        self.total = self.count = 0.0

    @property
    def value(self) -> float:
        """The mean, if there is a measurement."""
        return self.total / self.count

    def add(self, total: float, count: float) -> None:
        """Add a measurement."""
        self.total = _FADES * self.total + total
        self.count = _FADES * self.count + count
