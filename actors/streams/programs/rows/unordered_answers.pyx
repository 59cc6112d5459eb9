"""Programs whose outputs are answers in the order in which they come.

A watermark, and the end of the stream, wait for the answers of all rows before them. This is the unordered mode of
Flink's asynchronous operators.

Each round leaves once, in order, as stages want it. But a round may leave before its rows have their answers: these
leave with later rounds. So only the latest round waits for all that are missing. Where an answer is there and only
that round is, the run is asked for a further one, without rows. A round has begun with all its rows when it leaves,
and so many rows are begun at a time as may wait for answers. So the operator holds no more than these.
"""

cimport cython
from collections import deque
from libc.stdint cimport int64_t

from callboard.core.asserting cimport holds
from callboard.streams.programs.program cimport Batch
from callboard.streams.programs.rounds cimport fresh
from callboard.streams.programs.rows.answers cimport Answers, PendingRound, PendingRow


@cython.final
cdef class WatermarkInterval:

    def __cinit__(self):
        self.answered = []


@cython.final
@cython.no_gc_clear
cdef class UnorderedAnswers(Answers):
    """The same outputs. Rows wait here until they leave: for their answers, and for those of rows before a
    watermark.

    In process() answers are given in the order of rows.
    """

    def __init__(self, str name, **options):
        super().__init__(name, **options)
        self.latest = WatermarkInterval.__new__(WatermarkInterval)
        self.intervals = deque([self.latest])

    cdef PendingRound come(self, Batch batch, int64_t serial):
        cdef Batch out
        if batch is None:
            batch = Batch([])
        cdef list into = fresh(self, batch)
        for out in into:  # answers leave with rounds of other rows, and no join needs to know of which
            out.lineages = None
        self.has_asked = False
        return self.taken(batch, serial, into)

    cdef int note_begun(self, PendingRow request) except -1:
        self.latest.missing += 1
        request.interval = self.latest
        return 0

    cdef int note_watermark(self, object watermark) except -1:
        self.latest.watermark = watermark
        self.latest = WatermarkInterval.__new__(WatermarkInterval)
        self.intervals.append(self.latest)
        return 0

    cdef int note_done(self, PendingRow request) except -1:
        cdef WatermarkInterval interval = request.interval
        assert holds(interval.missing > 0)
        interval.missing -= 1
        interval.answered.append(request)
        return 0

    cdef bint put_out(self, PendingRound taken) except -1:
        cdef Batch batch = taken.batch, out
        while self.put_answers(taken.into):
            self.go_on()  # others may begin
        cdef bint is_empty = self.in_flight == 0 and len(self.intervals) == 1
        cdef bint has_begun = taken.begun == len(batch.rows)
        if batch.final or batch.error is not None:
            return has_begun and is_empty
        if not has_begun or len(self.intervals) > self.most + 1:
            return False
        if is_empty or len(self.rounds) > 1:
            return True
        if self.add_round is not None and not self.has_asked:
            for out in taken.into:
                if out.rows:
                    self.has_asked = True
                    self.add_round()
                    break
        return False

    cdef bint put_answers(self, list into) except -1:
        """Give the answers and watermarks that may leave. Return whether rows have left."""
        cdef WatermarkInterval interval
        cdef PendingRow request
        cdef Batch out
        cdef list answered
        cdef bint any_left = False
        while True:
            interval = self.intervals[0]
            answered, interval.answered = interval.answered, []
            for request in answered:
                self.in_flight -= 1
                any_left = True
                self.put(request, None, into)
            if interval.watermark is None or interval.missing > 0:
                return any_left
            for out in into:
                out.rows.append(interval.watermark)
            self.intervals.popleft()
