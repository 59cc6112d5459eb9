"""The choice of the place where a box is called: `processes="auto"`, and several workers."""

from __future__ import annotations

import time
from typing import Any

from callboard.nets.kernel.process_boxes import CallBatch, ProcessBoxNode
from callboard.worker_processes.choice import Mean, PlaceChoice, working
from callboard.worker_processes.pickling import dumps, loads

# Nanoseconds that the calls of a batch may take, by those of the latest batch of the box.
LONGEST = 4_000_000
# Records in a batch. After eight halvings there is one.
MOST = 256

_FEW = 8  # records of the first trial of a hand-over
_SAMPLES = 64  # at most, and of others
_TRIAL = 1_000_000  # nanoseconds for one
_FIRST = 16  # turns with a trial each
_EACH = 32  # turns for each further one


def set_batch_size(batch: CallBatch, spent: int) -> None:
    """Set the most records of a queue's next batch, by the nanoseconds that one took."""
    batch.queue.batch_size = min(max(1, LONGEST * len(batch) // max(1, spent)), MOST)


class BoxChoice(PlaceChoice):
    """Whether the executor calls a box, or others do: here, processes.

    A turn is the work of the coordinator for one message. Records that a box gets in different
    turns could not be at work at the same time, unless messages wait.
    """

    there = "worker processes"
    _PER_RECORD = 400  # nanoseconds of a hand-over beside the encoding

    def __init__(self, box: ProcessBoxNode, cores: int, most_batches: int) -> None:
        super().__init__(cores)
        self.box = box
        self._function: Any = box.function
        self._usable = cores
        self._most_batches = most_batches
        self._at_once = Mean()  # records that could be at work at the same time
        self._turns = 0  # in which the executor called it
        self._wanted = _FEW  # samples of the next trial
        self._samples: list[tuple[tuple[Any, ...], Any]] = []
        self._seen = 0, 0
        box.choice = self

    def stay(self, why: str) -> None:
        """Have the executor call the box from now on."""
        self.box.is_here = True
        self._stay(why)

    # --- in the program ---------------------------------------------------------------------------

    def begin_turn(self) -> None:
        """Look at the box before the executor works."""
        box = self.box
        self._seen = box.tries, box.spent
        is_due = self._turns < _FIRST or self._turns % _EACH == 0
        if is_due and box.is_here and not self._stays:
            box.function = self._sampled if not box.generates else self._sampled_outputs

    def end_turn(self, share: float, queued: int) -> None:
        """Note what the executor has called, and choose.

        `share` is that of its processor time in the time that it took, and `queued` is the number
        of messages that wait.
        """
        box = self.box
        box.function = self._function
        calls, spent = box.tries - self._seen[0], box.spent - self._seen[1]
        if not calls or not box.is_here or self._stays:
            self._samples = []
            return
        self._turns += 1
        self._note_work(working(spent, spent * share), calls)
        self._note_at_once(calls + queued)
        self._try_hand_over()
        if not self._stays:
            self._choose()

    def _sampled(self, *values: Any) -> Any:
        output = self._function(*values)
        self._note_sample(values, output)
        return output

    def _sampled_outputs(self, *values: Any) -> Any:
        outputs: list[Any] = []
        for output in self._function(*values):
            if len(outputs) < self._wanted:
                outputs.append(output)
            yield output
        self._note_sample(values, outputs)

    def _note_sample(self, values: tuple[Any, ...], output: Any) -> None:
        self._samples.append((values, output))
        if len(self._samples) >= self._wanted:
            self.box.function = self._function

    def _try_hand_over(self) -> None:
        """Measure a hand-over without one."""
        samples, self._samples = self._samples, []
        if not samples:
            return
        try:
            encoded = dumps([output for _, output in samples])
            begun = time.thread_time_ns()
            dumps([list(column) for column in zip(*(values for values, _ in samples), strict=True)])
            loads([encoded])
        except Exception:
            self.stay("a record or an output cannot be pickled")
            return
        number = len(samples)
        self._encoding.add(time.thread_time_ns() - begun + number * self._PER_RECORD, number)
        self._size.add(self._expected_size(), 1)
        self._wanted = int(min(max(1, _TRIAL / self._encoding.value), _SAMPLES))

    def _expected_size(self) -> float:
        by_time = LONGEST / max(1, self._work.value)
        return max(1, min(MOST, self._at_once.value / self._most_batches, by_time))

    # --- in processes -----------------------------------------------------------------------------

    def note_sent(self, batch: CallBatch, nanoseconds: int) -> None:
        """Note the time that the encoding of a batch took."""
        self._note_hand_over(nanoseconds + len(batch) * self._PER_RECORD, len(batch))
        self._note_at_once(self.box.waiting + self.box.running)

    def note_answer(self, batch: CallBatch, decoding: int, elapsed: int, spent: int) -> None:
        """Note how long the decoding took, and the calls, and choose. All in nanoseconds."""
        self._encoding.total += decoding  # of the rows that were encoded
        if not self._stays:
            self._note_work(working(elapsed, spent), len(batch))
            self._choose()

    def _note_at_once(self, records: int) -> None:
        self._at_once.add(records, 1)
        self._cores = min(self._usable, self._at_once.value)


class WorkerChoice(BoxChoice):
    """Whether the executor calls a box, or several workers do. They get the values as they are."""

    there = "workers"
    _PER_RECORD = 300
    _PER_ROUND = 10_000

    def __init__(self, box: ProcessBoxNode, cores: int, most_batches: int) -> None:
        super().__init__(box, cores, most_batches)
        self._alone = 0.0  # nanoseconds of a call by the executor
        self._pause = 8  # choices after which a box may leave again
        self._rest = 0  # of them, those to come

    def begin_turn(self) -> None:
        """Look at the box before the executor works."""
        self._seen = self.box.tries, self.box.spent

    def _try_hand_over(self) -> None:
        self._encoding.add(self._PER_RECORD, 1)
        self._size.add(self._expected_size(), 1)

    def _choose(self) -> None:
        """Choose. Calls take longer on several workers if these update the same objects.

        If they gain nothing, the box comes back. Its calls may only have become longer. So it may
        leave again, but each time later.
        """
        if self._rest:
            self._rest -= 1
            return
        if self.is_here:
            self._alone = self._work.value
        super()._choose()
        if not self.is_here and self._work.value > self._usable * self._alone:
            self.is_here = True
            self._pause = self._rest = 2 * self._pause
