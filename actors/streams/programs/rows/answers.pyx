"""Programs whose outputs arrive later, as answers of actors or results of coroutines.

A program begins with a number of rows at a time, and gives their answers in the order of the rows. In a run in a system
it has an answering stage. Rounds are in its work until their answers are there, and no lane waits. Elsewhere, as in a
sequential run, it waits in process().
"""

import cython
import time

from asyncio import CancelledError
from collections import deque
from libc.stdint cimport int64_t
from libcpp cimport bool as cbool

from callboard._inside.answers.future cimport Future
from callboard._inside.answers.waiters cimport Wake
from callboard.core.asserting cimport holds
from callboard.scheduling.flow.stage cimport RowTotals, Work
from callboard.scheduling.team cimport Team
from callboard.streams.programs.program cimport Batch, Program, Watermark, pass_on
from callboard.streams.programs.rounds cimport fresh, is_dropped, named, output_of, rows_among, take, work_of
from callboard.streams.programs.unawaited cimport refuse_unawaited

from callboard.core.text import counted, safe_repr
from callboard.streams.errors import RunEnded
from callboard.streams.programs.rows.coroutines import Pauses


@cython.final
cdef class PendingRow(Wake):

    cdef void wake(self, object future) noexcept:
        """The future is done. In any thread."""
        cdef Answers program = self.program
        program.answered.append(self)
        program.look_again()


@cython.final
cdef class PendingRound:
    """A round whose answers have not all arrived."""


@cython.no_gc_clear  # at the end of its flow, in a circle that the collector breaks, rounds come still
cdef class Answers(Program):
    """One output for each row: the answer, or the result of `combine` for the row and the answer.

    `ask`         a function of a row that returns a future
    `coroutines`  instead: an object with `close()`, and with `begin()`, which gets pairs of a row and a future
    `most`        the number of rows that may wait for an answer at a time
    """

    def __init__(self, str name, *, ask=None, coroutines=None, combine=None, Py_ssize_t most, int retries=0,
                 double backoff=0, double jitter=0, **options):
        super().__init__(name, kind="stateful", **options)
        self.ask, self.combine = ask, combine
        self.coroutines = None if coroutines is None else coroutines()
        self.most, self.retries = most, retries
        self.pauses = Pauses(backoff, jitter) if coroutines is None else self.coroutines.pauses
        self.rounds, self.unbegun, self.answered, self.calls = deque(), deque(), deque(), []

    @property
    def asks(self):
        """True if actors are asked, and False if coroutines answer."""
        return self.ask is not None

    @property
    def waits_for(self):
        """The answers that it waits for, in words."""
        return counted(self.in_flight, "answer")

    @property
    def holds_thread(self):
        """True if a thread waits for its answers, in process()."""
        return self.answering == NULL

    def enter_system(self, event_loop, timers, Team team, seed=None):
        """Use a system's event loop and timers, and tell its team while rounds are in work. A `seed` makes the pauses
        between attempts the same in each run."""
        self.timers, self.team = timers, team
        self.pauses.seed(seed)
        if self.coroutines is not None:
            self.coroutines.event_loop = event_loop

    cpdef close(self):
        self.leave()
        if self.coroutines is not None:
            self.coroutines.close()

    # --- requests -----------------------------------------------------------------------------------

    cdef PendingRound come(self, Batch batch, int64_t serial):
        """Take a batch that came at an answering stage; None: an empty one."""
        return self.taken(batch, serial, None if batch is None else fresh(self, batch))

    cdef PendingRound taken(self, Batch batch, int64_t serial, list into):
        cdef PendingRound taken = PendingRound.__new__(PendingRound)
        taken.batch, taken.serial, taken.into = batch, serial, into
        if batch is not None:
            taken.size = len(batch.rows)
            taken.requests = [None] * taken.size
        return taken

    cdef PendingRow begin_next(self, PendingRound taken):
        """Begin with the next row; None for a watermark."""
        cdef PendingRow request
        cdef Py_ssize_t at = taken.begun
        row = taken.batch.rows[at]
        taken.begun += 1
        if type(row) is Watermark:
            return None
        request = PendingRow.__new__(PendingRow)
        request.program, request.row, request.serial = self, row, taken.batch.first + at
        taken.requests[at] = request
        self.begin(request)
        return request

    cdef int begin(self, PendingRow request) except -1:
        request.tries += 1
        if self.ask is None:
            request.future = Future.__new__(Future)
            self.calls.append((request.row, request.future))
            return 0
        try:
            future = self.ask(request.row)
            if not isinstance(future, Future):
                refuse_unawaited(future)
                raise TypeError(f"expected a future from ask(), got {safe_repr(future)}")
            request.future = future
        except Exception as error:
            request.future = Future.__new__(Future)
            request.future.set_exception(error)
        return 0

    cdef int hand_over(self) except -1:
        """Start the coroutines that are due."""
        cdef list calls = self.calls
        if not calls:
            return 0
        self.calls = []
        try:
            self.coroutines.begin(calls)
        except Exception as error:
            for _, future in calls:
                future.set_exception(error)
        return 0

    cdef bint settle(self, PendingRow request) except -1:
        """Handle a future that is done. Return whether the request is done, too; else it has another future."""
        assert holds(request.future.flag.is_set())
        cdef double seconds
        if request.pauses:
            request.pauses = False
            self.begin(request)
            return False
        if request.tries > self.retries or not isinstance(request.future.error, Exception):
            request.is_done = True
            return True
        seconds = self.pauses.after(request.tries)
        if seconds > 0 and self.timers is not None:
            request.pauses, request.future = True, self.timers.sleep(seconds)
            return False
        if seconds > 0:
            time.sleep(seconds)
        self.begin(request)
        return False

    cdef int put(self, PendingRow request, object lineage, list into) except -1:
        """Give the output of the row that is the next to leave."""
        cdef Batch out = into[0]
        error = request.future.error
        if error is None:
            output = request.future.value
            try:
                if self.combine is not None:
                    output = self.combine(request.row, output)
                    refuse_unawaited(output)
            except Exception as raised:
                error = raised
        else:
            error = request.future.exception()  # as it came
            if error is not None and not isinstance(error, (Exception, CancelledError)):
                raise error  # for instance SystemExit, which is no error of a row
        if error is not None:
            return self.failed_at(request.serial, request.row, error, lineage, into)
        out.rows.append(output)
        if out.lineages is not None:
            out.lineages.append(lineage)
        return 0

    cdef int put_next(self, PendingRound taken) except -1:
        """Emit the outputs of the next row of a round, in the order of rows."""
        cdef PendingRow request = taken.requests[taken.left]
        lineages = taken.batch.lineages
        if request is None:
            pass_on(taken.batch, taken.left, taken.into)
        else:
            self.put(request, None if lineages is None else lineages[taken.left], taken.into)
            taken.requests[taken.left] = None
        taken.left += 1
        return 0

    # --- waiting here -------------------------------------------------------------------------------

    cpdef process(self, Batch batch, list into):
        cdef PendingRound taken = self.taken(batch, 0, into)
        cdef Py_ssize_t n = len(batch.rows)
        cdef PendingRow request
        while taken.left < n:
            while taken.begun < n and taken.begun < taken.left + self.most:
                self.begin_next(taken)
            self.hand_over()
            request = taken.requests[taken.left]
            if request is not None:
                self.wait_for(request.future)
                if not self.settle(request):
                    continue
            self.put_next(taken)

    cdef int wait_for(self, Future future) except -1:
        """Wait, at most until the run is cancelled. RunEnded: it was."""
        with cython.critical_section(self):
            self.awaited = future
            if self.is_interrupted:
                future.complete(None, RunEnded(f"{self.name!r} waits no more"))
        future.exception()
        with cython.critical_section(self):
            self.awaited = None
        if self.is_interrupted:
            raise RunEnded(f"{self.name!r} waited for an answer when its run was cancelled")
        return 0

    cdef void interrupt(self) noexcept:
        """Wake a thread that waits in process(). Safe in every thread."""
        cdef Future awaited
        with cython.critical_section(self):
            self.is_interrupted = True
            awaited = self.awaited
        if awaited is not None:
            awaited.complete(None, RunEnded(f"{self.name!r} waits no more"))

    # --- at an answering stage ----------------------------------------------------------------------

    cdef void look_again(self) noexcept:
        with cython.critical_section(self):
            if self.answering != NULL:
                self.answering.call()
                return
        if self.ending.stopped_at.load() < 0:
            self.interrupt()

    cdef void leave(self) noexcept:
        with cython.critical_section(self):
            self.answering = NULL
        self.note_rounds()

    cdef void note_rounds(self) noexcept:
        """Tell the team that it is not idle while rounds are in work, since no lane works on them."""
        cdef bint is_unfinished
        with cython.critical_section(self):
            is_unfinished = self.answering != NULL and len(self.rounds) > 0
            if self.team is not None and is_unfinished != self.is_unfinished:
                self.is_unfinished = is_unfinished
                self.team.add_waiting(1 if is_unfinished else -1)

    cdef bint next(self, void** output) except -1:
        """Whether the earliest round in work is finished; then it leaves, with this output."""
        cdef PendingRound taken
        cdef object error
        output[0] = NULL
        if not self.rounds:
            return False
        taken = self.rounds[0]
        if taken.batch is not None and not self.has_ended and not is_dropped(self, taken.serial):
            error = taken.batch.error
            try:
                self.go_on()
                if not self.put_out(taken):
                    return False
            except BaseException as raised:
                error = named(self.name, raised)
            self.has_ended = error is not None
            self.counts.taken += rows_among(taken.batch.rows)
            output[0] = output_of(self, taken.serial, taken.into, taken.batch.final, error, self.counts)
        self.rounds.popleft()
        if self.unbegun and self.unbegun[0] is taken:
            self.unbegun.popleft()
        self.note_rounds()
        return True

    cdef int go_on(self) except -1:
        """Look at the answers that have come, and begin with as many rows as may begin."""
        cdef PendingRow request
        cdef PendingRound taken
        while self.answered:
            request = self.answered.popleft()
            if self.settle(request):
                self.note_done(request)
            else:
                request.future.add_done_callback(request)
        while self.unbegun and self.in_flight < self.most:
            taken = self.unbegun[0]
            if taken.begun == taken.size:
                self.unbegun.popleft()
                continue
            request = self.begin_next(taken)
            if request is None:
                if taken.begun:
                    self.note_watermark(taken.batch.rows[taken.begun - 1])
            else:
                self.in_flight += 1
                self.note_begun(request)
                request.future.add_done_callback(request)
        assert holds(self.in_flight >= 0)
        return self.hand_over()

    cdef int note_begun(self, PendingRow request) except -1:
        return 0

    cdef int note_watermark(self, object watermark) except -1:
        return 0

    cdef int note_done(self, PendingRow request) except -1:
        self.in_flight -= 1
        return 0

    cdef bint put_out(self, PendingRound taken) except -1:
        """Emit the outputs of the round's rows, as far as answers have arrived. Return whether all have."""
        cdef PendingRow request
        cdef list rows = taken.batch.rows
        while taken.left < len(rows):
            if type(rows[taken.left]) is not Watermark:
                request = taken.requests[taken.left]
                if request is None or not request.is_done:
                    return False
            self.put_next(taken)
        return True


cdef Work answering_work_of(Answers program) noexcept:
    """Return the functions that an answering stage calls. They point to the program, so the caller must keep that."""
    cdef Work work = work_of(program)
    work.process = take_round
    work.next = next_round
    return work


cdef void* take_round(void* this, int64_t serial, void** inputs, RowTotals& counts) noexcept with gil:
    cdef Answers program = <Answers>this
    cdef Batch batch = take(program, 0, inputs)
    cdef PendingRound taken = program.come(batch, serial)
    program.rounds.append(taken)
    program.note_rounds()
    if batch is not None and taken.size:
        program.unbegun.append(taken)
    return NULL


cdef cbool next_round(void* this, void** output, RowTotals& counts) noexcept with gil:
    cdef Answers program = <Answers>this
    cdef bint is_finished = program.next(output)
    counts.taken += program.counts.taken
    counts.given += program.counts.given
    program.counts.taken = program.counts.given = 0
    return is_finished


@cython.final
cdef class WatermarkInterval:

    def __cinit__(self):
        self.answered = []


@cython.final
@cython.no_gc_clear
cdef class UnorderedAnswers(Answers):
    """The same outputs, in the order in which the answers come. Rows wait here until they leave: for their answers, and
    for those of rows before a watermark.

    A watermark, and the end of the stream, wait for the answers of all rows before them. This is the unordered mode of
    Flink's asynchronous operators.

    Each round leaves once, in order, as stages require. But a round may leave before its rows have their answers: these
    leave with later rounds. So only the latest round waits for all that are missing. Where an answer is there and only
    that round is, the run is asked for a further one, without rows. A round has begun with all its rows when it leaves,
    and so many rows are begun at a time as may wait for answers. So the operator holds no more than these.

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
