"""Programs of a segment: stateless operators in a row whose functions run in worker processes.

The last program of a segment sends each round to a process, which runs all operators of the segment, and takes its
outputs in the order of rounds. The programs before it pass their rows on unchanged. A process sees single rounds, so
the serial numbers of its errors begin with the round: here they become those of the run.
"""

from libc.stdint cimport int64_t

from callboard.scheduling.flow.stage cimport RowTotals
from callboard.streams.programs.program cimport Batch, Program, Watermark
from callboard.streams.programs.rounds cimport rows_among
from callboard.streams.programs.rows.answers cimport Answers, PendingRound, PendingRow

from callboard.core.text import counted
from callboard.streams.errors import FailedRow, ProcessLost, StreamError

# How often a round is sent to another process after its process has ended.
cdef int MOST_TRIES = 8


cdef class SegmentMember(Program):
    """An operator of a segment before its last one."""

    def __init__(self, str name, **options):
        super().__init__(name, kind="stateful", **options)
        self.origin = -1

    cpdef process(self, Batch batch, list into):
        cdef Batch out = into[0]
        if self.origin < 0:
            self.origin = batch.first
        out.rows, out.lineages = batch.rows, batch.lineages

    @property
    def serials(self):
        return [self.before + self.given]

    @serials.setter
    def serials(self, list numbers):
        self.before = numbers[0]


cdef class InProcesses(Answers):
    """The last operator of a segment.

    `segment` has `encode(rows, lineages, final, fails)`, which returns a request and what it refused; `send(request)`,
    which returns a future of the answer; `decode(answer)`; `is_lost(error)`, which says whether the process ended; and
    `close()`.
    """

    def __init__(self, str name, *, segment, tuple members, Py_ssize_t most, **options):
        super().__init__(name, ask=segment.send, most=most, retries=MOST_TRIES, backoff=0.01, **options)
        self.segment, self.members = segment, members
        self.places = {program.name: place for place, program in enumerate((*members, self))}

    @property
    def asks(self):
        """False: no actor is asked."""
        return False

    cpdef close(self):
        Answers.close(self)
        self.segment.close()

    cdef PendingRow begin_next(self, PendingRound taken):
        cdef PendingRow request = PendingRow.__new__(PendingRow)
        cdef Batch batch = taken.batch
        cdef Program first = self.members[0] if self.members else self
        request.program, request.serial = self, taken.serial
        taken.begun = len(batch.rows)
        taken.requests[0] = request
        request.row = self.segment.encode(batch.rows, batch.lineages, batch.final, first.errors == "fail")
        self.begin(request)
        return request

    cdef bint settle(self, PendingRow request) except -1:
        if not request.pauses and not self.segment.is_lost(request.future.error):
            request.is_done = True
            return True
        return Answers.settle(self, request)

    cdef bint put_out(self, PendingRound taken) except -1:
        cdef PendingRow request
        if not taken.batch.rows:
            return True
        request = taken.requests[0]
        if request is None or not request.is_done:
            return False
        error = request.future.exception()
        if self.segment.is_lost(error):
            raise ProcessLost(
                f"{counted(len(taken.batch.rows), 'row')} of {' and '.join(map(repr, self.places))} were sent to "
                f"{MOST_TRIES + 1} worker processes, and each ended with them; {error}")
        if error is not None:
            raise error
        self.put_outputs(taken, request.row[1], request.future.value)
        return True

    cpdef process(self, Batch batch, list into):
        cdef PendingRound taken = self.taken(batch, 0, into)
        cdef PendingRow request
        if not batch.rows:
            return
        request = self.begin_next(taken)
        while True:
            self.wait_for(request.future)
            if self.settle(request):
                break
        self.put_out(taken)

    cdef int put_outputs(self, PendingRound taken, object refused, object answer) except -1:
        """Emit the outputs that a process made of a round. `refused` are the rows that could not be sent."""
        cdef Program first = self.members[0] if self.members else self
        cdef SegmentMember member
        cdef Batch out
        cdef RowTotals here, there
        cdef list rows = taken.batch.rows, firsts = [taken.batch.first]
        cdef int64_t came = rows_among(rows), passed, spent
        cdef Py_ssize_t place
        outputs, failure, counts, dropped = self.segment.decode(answer)
        if self.members:
            firsts[0] += (<SegmentMember>first).origin
        for member in self.members:
            firsts.append(member.before + member.given)
        for (made, lineages), out in zip(outputs, taken.into):
            out.rows = made
            out.lineages = lineages
            out.hide()
        for kind, what in dropped:
            if kind == "late":
                self.row_counts._late(*what)
            else:
                self.row_counts._skipped(self.placed(what, firsts, rows, refused))
        if self.failures >= 0:
            out = taken.into[self.failures]
            for place, one in enumerate(out.rows):
                if type(one) is not Watermark:
                    out.rows[place] = self.placed(one, firsts, rows, refused)
        here.taken = here.given = came
        for place, member in enumerate(self.members):
            there.taken, there.given, passed, spent = counts[place]
            member.given += passed
            if member.stage != NULL:
                member.stage.note_counted(here, there, spent)
        there.taken, there.given, passed, spent = counts[len(self.members)]
        here.given = there.given  # which are counted when they leave
        if self.stage != NULL:
            self.stage.note_counted(here, there, spent)
        if refused is not None:
            for place, error in refused[0]:
                failed = FailedRow(first.name, firsts[0] + place, rows[place], error)
                if first.errors == "fail":
                    failure = failure or (first.name, place, rows[place], "", error)
                elif first.errors == "skip":
                    self.row_counts._skipped(failed)
                else:
                    self.insert(failed, taken, place)
        if failure is not None:
            raise self.placed(failure, firsts, rows, refused)
        return 0

    cdef int insert(self, object failed, PendingRound taken, Py_ssize_t place) except -1:
        """Put a failure at its place among those of the same operator and the watermarks."""
        cdef Batch out = taken.into[self.failures]
        cdef Py_ssize_t at = 0
        cdef int64_t marks = place - rows_among(taken.batch.rows[:place])  # before it
        for one in out.rows:
            if type(one) is Watermark:
                if marks == 0:
                    break
                marks -= 1
            elif one.serial > failed.serial:
                break
            at += 1
        out.rows.insert(at, failed)
        if out.lineages is not None:
            out.lineages.insert(at, taken.batch.lineages[place])
        return 0

    cdef object placed(self, object failure, list firsts, list rows, object refused):
        """Return a failure with the serial number that its row has in the run."""
        if isinstance(failure, FailedRow):
            name, serial, row, when, error = failure.operator, failure.serial, failure.row, "", failure.error
        else:
            name, serial, row, when, error = failure
        place = self.places[name]
        if serial is not None:
            if place == 0 and not when:
                if refused is not None and refused[1] is not None:
                    serial = refused[1][serial]
                row = rows[serial]
            serial += firsts[place]
        if isinstance(failure, FailedRow):
            return FailedRow(name, serial, row, error)
        raised = StreamError(name, serial, row, when)
        raised.__cause__ = error
        return raised
