"""Programs of a segment: operators in a row whose functions run in worker processes.

The last program of a segment sends each round to a process, which runs all operators of the segment, and takes its
outputs in the order of rounds. The programs before it pass their rows on unchanged. A process sees single rounds, so
the serial numbers of its errors begin with the round: here they become those of the run.

An operator with one state is a segment by itself. All of its rounds go to the process that has the state. For keyed
operators see keyed_in_processes.pyx.
"""

import cython

from libc.stdint cimport int64_t

from callboard.core.clock cimport monotonic_ns
from callboard.scheduling.flow.stage cimport RowTotals
from callboard.streams.programs.program cimport Batch, Program, Watermark
from callboard.streams.programs.rounds cimport rows_among
from callboard.streams.programs.rows.answers cimport Answers, PendingRound, PendingRow

from callboard.core.text import counted
from callboard.streams.errors import FailedRow, ProcessLost, StreamError
from callboard.streams.programs.saved import Columns

# Nanoseconds of the hand-over of a request, without its rows: wake-ups of threads.
cdef int64_t PER_REQUEST = 100_000

# How often a round is sent to another process after its process has ended.
cdef int MOST_TRIES = 8


cdef int64_t time_of(int64_t worked, int64_t handed_over, Py_ssize_t requests) noexcept:
    """The size of rounds depends on this: with large rows, it is the hand-over that takes long. Each side encodes,
    copies and decodes, in both directions; what is measured is about half of one side's. A request costs some time
    in any case, which says nothing of rows."""
    return max(worked, 4 * (handed_over - PER_REQUEST * requests))


@cython.no_gc_clear  # as its base
cdef class ProcessAnswers(Answers):
    """The base of programs that send rounds to processes. `segment` names the processes that are `at_work()`, and has
    `send(request)`, which returns a future of the answer, and `close()`. `members` are the programs of the other
    operators of the segment. With `tries_again`, a round whose process has ended goes to another one."""

    def __init__(self, str name, *, segment, tuple members=(), bint tries_again=False, **options):
        super().__init__(name, ask=segment.send, retries=MOST_TRIES if tries_again else 0, backoff=0.01, **options)
        self.segment, self.members = segment, members
        self.places = {program.name: place for place, program in enumerate((*members, self))}

    @property
    def asks(self):
        """False: no actor is asked."""
        return False

    @property
    def waits_for(self):
        said = f"{counted(self.in_flight, 'round')} in worker processes"
        at_work = self.segment.at_work()
        return f"{said}: {', '.join(at_work)}" if at_work else said

    cpdef close(self):
        Answers.close(self)
        self.segment.close()

    cdef Program first_of_segment(self):
        return self.members[0] if self.members else self

    cdef list firsts_of(self, PendingRound taken):
        """Return the serial number of the first row of a round, for each operator of the segment."""
        cdef SegmentMember member
        cdef list firsts = [taken.batch.first]
        if self.members:
            firsts[0] += (<SegmentMember>self.members[0]).origin
        for member in self.members:
            firsts.append(member.before + member.given)
        return firsts

    cdef int check(self, PendingRow request, PendingRound taken) except -1:
        """Raise the error of a request that is done, if it has one."""
        error = request.future.exception()
        if error is None:
            return 0
        if request.tries > MOST_TRIES and self.segment.is_lost(error):
            raise ProcessLost(
                f"{counted(len(taken.batch.rows), 'row')} of {' and '.join(map(repr, self.places))} were sent to "
                f"{MOST_TRIES + 1} worker processes, and each ended with them; {error}")
        raise error

    cdef int note_dropped(self, list dropped, list firsts, list rows, object refused) except -1:
        """Count the rows that a process has dropped."""
        for kind, what in dropped:
            if kind == "late":
                self.row_counts._late(*what)
            else:
                self.row_counts._skipped(self.placed(what, firsts, rows, refused))
        return 0

    cdef int note_members(self, list counts, RowTotals* here) except -1:
        """Count for the other operators of the segment the rows that came to them in a process, and left them."""
        cdef SegmentMember member
        cdef RowTotals there
        cdef int64_t passed, spent
        for place, member in enumerate(self.members):
            there.taken, there.given, passed, spent = counts[place]
            member.given += passed
            if member.stage != NULL:
                member.stage.note_counted(here[0], there, spent)
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
                kept = None if refused is None else refused[1]
                if kept is not None:
                    serial = kept[serial] if serial < len(kept) else len(rows)
                row = rows[serial] if serial < len(rows) else None  # else at the end of the stream
            serial += firsts[place]
        if isinstance(failure, FailedRow):
            return FailedRow(name, serial, row, error)
        raised = StreamError(name, serial, row, when)
        raised.__cause__ = error
        return raised


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


@cython.final
@cython.no_gc_clear
cdef class InProcesses(ProcessAnswers):
    """The last operator of a segment.

    `segment` has `encode(batch, fails)`, which returns a request and what it refused; `send(request)`, which returns a
    future of the answer; `decode(answer)`; `is_lost(error)`, which says whether the process ended; and `close()`. With
    `has_state` also `snapshots()` and `restore(states)`, with the state of each process: there is one. A segment that
    `chooses` has `is_here` and `run_here(batch)`; if encode() or decode() return None, the round has to run here.
    """

    def __init__(self, str name, *, segment, tuple members, Py_ssize_t most, bint has_state=False, bint chooses=False,
                 **options):
        # A state's rounds are sent again where they are sent.
        super().__init__(name, segment=segment, members=members, most=most, tries_again=not has_state, **options)
        self.has_state = has_state
        self.chooses, self.most_away = chooses, most
        if chooses:
            self.note_choice()

    cdef PendingRound taken(self, Batch batch, int64_t serial, list into):
        cdef PendingRound taken = Answers.taken(self, batch, serial, into)
        taken.requests = [None]
        if batch is not None:
            taken.size = 1 if batch.rows or (batch.final and self.has_state) else 0
        return taken

    cdef PendingRow begin_next(self, PendingRound taken):
        cdef PendingRow request = PendingRow.__new__(PendingRow)
        cdef Program first = self.first_of_segment()
        cdef int64_t begun = monotonic_ns()
        request.program, request.serial = self, taken.serial
        taken.begun = 1
        taken.requests[0] = request
        request.row = self.segment.encode(taken.batch, first.errors == "fail")
        if request.row is None:
            taken.requests[0] = None
            return None
        self.begin(request)
        taken.spent = monotonic_ns() - begun
        return request

    cdef int note_choice(self) except -1:
        """Begin with no round ahead of its turn if rounds run here."""
        self.most = 0 if self.segment.is_here else self.most_away
        return 0

    cdef bint settle(self, PendingRow request) except -1:
        if not request.pauses and (self.has_state or not self.segment.is_lost(request.future.error)):
            request.is_done = True
            return True
        return Answers.settle(self, request)

    cdef bint put_out(self, PendingRound taken) except -1:
        cdef PendingRow request
        if taken.size == 0:
            return True
        request = taken.requests[0]
        if request is None and self.chooses and (taken.begun or self.most == 0):
            taken.begun = 1
            return self.run_here(taken)
        if request is None or not request.is_done:
            return False
        self.check(request, taken)
        outcome = self.segment.decode(request.future.value)
        if outcome is None:
            return self.run_here(taken)
        if self.chooses:
            self.note_choice()
        self.put_outputs(taken, request.row[1], outcome)
        return True

    cdef bint run_here(self, PendingRound taken) except -1:
        outcome = self.segment.run_here(taken.batch)
        self.note_choice()
        self.put_outputs(taken, None, outcome)
        return True

    cpdef list snapshot(self, object kept):
        if not self.has_state:
            return []
        (head, columns), = self.segment.snapshots()
        return [head, *[Columns(each) for each in columns]]

    cpdef restore(self, tuple head, list columns, object kept, bint divided):
        if not self.has_state:
            Answers.restore(self, head, columns, kept, divided)
        self.segment.restore([(head, columns)])

    cdef int put_outputs(self, PendingRound taken, object refused, object outcome) except -1:
        """Emit what came of a round. `refused` are the rows that could not be sent."""
        cdef Program first = self.first_of_segment()
        cdef Batch out
        cdef RowTotals here, there
        cdef list rows = taken.batch.rows, firsts = self.firsts_of(taken)
        cdef int64_t spent
        cdef Py_ssize_t place
        outputs, failure, counts, dropped, _ = outcome
        for (made, lineages), out in zip(outputs, taken.into):
            out.rows = made
            out.lineages = lineages
            out.hide()
        self.note_dropped(dropped, firsts, rows, refused)
        if self.failures >= 0:
            out = taken.into[self.failures]
            for place, one in enumerate(out.rows):
                if type(one) is not Watermark:
                    out.rows[place] = self.placed(one, firsts, rows, refused)
        here.taken = here.given = rows_among(rows)
        self.note_members(counts, &here)
        there.taken, there.given, _, spent = counts[len(self.members)]
        here.given = there.given  # which are counted when they leave
        if self.stage != NULL:
            self.stage.note_counted(here, there, time_of(spent, taken.spent, 1))
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


# --- where the rows are ---------------------------------------------------------------------------------


def pass_through(programs, Batch batch not None):
    """Pass a round through operators in a row.

    Returns the outputs of the last one, by port; what ended the round, as a StreamError, or None; and for each
    operator, how many rows entered and left it, how many left with watermarks, and how many nanoseconds it took.
    """
    cdef Program program
    cdef Batch one
    cdef list into = [batch], counts = [], rows
    cdef int64_t begun
    failure = None
    for program in programs:
        batch = into[0]
        into = [batch.follower() for _ in program.ports]
        begun = monotonic_ns()
        try:
            program.process_many([batch], into)
        except StreamError as raised:
            failure = raised
        except BaseException as raised:  # no error of a function; for instance SystemExit
            failure = StreamError(program.name)
            failure.__cause__ = raised
        if failure is not None:
            for one in into:
                one.final = False
        rows = (<Batch>into[0]).rows if into else []
        counts.append((rows_among(batch.rows), rows_among(rows), len(rows), monotonic_ns() - begun))
    return into, failure, counts
