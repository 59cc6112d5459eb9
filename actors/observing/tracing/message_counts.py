"""The messages between pairs of actors, estimated from the samples of traces."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING

from callboard.scheduling.tracing.recording import RecordReader
from callboard.scheduling.worker import WorkerThread

UNKNOWN = "(ended, or not monitored)"

if TYPE_CHECKING:
    from callboard.statistics import Records

MOST_PAIRS = 100_000
"""The number of pairs of actors whose messages are counted separately."""


class MessageCounts:
    """The estimated messages between the actors of one system, by their numbers."""

    def __init__(self, reader: RecordReader, records: Records) -> None:
        self._messages: Counter[tuple[int, int]] = Counter()
        self._others = 0  # of further pairs, once there are too many
        self._samples = 0
        self._reader = reader
        self._records = records
        self._every = 0
        self._lock = threading.RLock()

    def drain(self, worker: WorkerThread) -> None:
        """Count what a worker has recorded. It calls this itself before its ring is full."""
        with self._lock:
            for pair in self._reader.take_pairs(worker):
                self._samples += 1
                if pair in self._messages or len(self._messages) < MOST_PAIRS:
                    self._messages[pair] += self._every
                else:
                    self._others += self._every
            self._reader.forget_ended()

    def read(self) -> None:
        """Count what all workers have recorded so far."""
        for worker in self._reader.workers():
            self.drain(worker)

    def counts(self) -> tuple[dict[tuple[int, int], int], int, int]:
        """Return the messages of each pair, those of others, and how many samples that was."""
        with self._lock:
            return dict(self._messages), self._others, self._samples

    def begin(self, every: int) -> None:
        """Let each sample from now on stand for `every` messages; 0 when there are to be no more.

        Samples that are on their way count as before.
        """
        self.read()
        self._every = every or self._every

    def names(self) -> dict[int, tuple[str, str]]:
        """Return the paths and the classes of the actors, as far as they are known."""
        classes = self._records.classes
        return {
            number: (path.decode(), classes.get(number, UNKNOWN))
            for number, path in self._records.paths.copy().items()
        }
