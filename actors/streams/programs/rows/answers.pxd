# Programs whose outputs are answers that come later.
from libc.stdint cimport int64_t

from callboard._inside.answers.future cimport Future
from callboard._inside.answers.waiters cimport Wake
from callboard.scheduling.flow.answering_stage cimport AnsweringStage
from callboard.scheduling.flow.stage cimport RowTotals, Work
from callboard.scheduling.team cimport Team
from callboard.streams.programs.program cimport Batch, Program


cdef class PendingRow(Wake):
    # A row that an answer is wanted for.
    cdef Answers program
    cdef object row
    cdef int64_t serial      # of the row
    cdef Future future       # of the answer; or of a pause before the next try
    cdef int tries           # that were made
    cdef object interval     # where answers leave as they come: a WatermarkInterval
    cdef bint pauses
    cdef bint is_done        # no further try


cdef class PendingRound:
    # A round in work.
    cdef Batch batch         # None: empty
    cdef int64_t serial
    cdef list into
    cdef list requests       # for each row; None until it has begun, and after it has left
    cdef Py_ssize_t size     # of what is to begin: the rows; or what a program makes of them
    cdef Py_ssize_t begun    # of these
    cdef Py_ssize_t left     # rows
    cdef int64_t spent       # nanoseconds on the hand-over to a process


cdef class Answers(Program):
    cdef object ask          # a function that returns a future; or None
    cdef object coroutines   # else: they complete our futures
    cdef object combine      # a function of a row and its answer, or None
    cdef Py_ssize_t most     # requests at a time
    cdef int retries
    cdef object pauses       # between tries
    cdef object timers       # of the system, if there is one
    cdef Team team           # the same
    cdef bint is_unfinished  # rounds are in work, and the team counts that
    cdef object rounds       # a deque: those in work
    cdef object unbegun      # a deque: those of these with rows that have not begun
    cdef object answered     # a deque, to which any thread appends
    cdef list calls          # (row, future): for coroutines that are to begin
    cdef readonly Py_ssize_t in_flight
    cdef bint has_ended             # by an error of its own: later rounds are dropped
    cdef RowTotals counts           # of the round that has just left
    cdef Future awaited             # by the thread in process()
    cdef bint is_interrupted        # that thread waits no more
    cdef AnsweringStage* answering  # null: it has none, and waits in process()

    cdef PendingRound come(self, Batch batch, int64_t serial)
    cdef PendingRound taken(self, Batch batch, int64_t serial, list into)
    cdef PendingRow begin_next(self, PendingRound taken)
    cdef int begin(self, PendingRow request) except -1
    cdef int hand_over(self) except -1
    cdef bint settle(self, PendingRow request) except -1
    cdef int go_on(self) except -1
    cdef bint put_out(self, PendingRound taken) except -1
    cdef int put(self, PendingRow request, object lineage, list into) except -1
    cdef int put_next(self, PendingRound taken) except -1
    cdef int wait_for(self, Future future) except -1
    cdef void interrupt(self) noexcept
    # A row has begun; a watermark is the next; a row is done.
    cdef int note_begun(self, PendingRow request) except -1
    cdef int note_watermark(self, object watermark) except -1
    cdef int note_done(self, PendingRow request) except -1
    cdef bint next(self, void** output) except -1
    cdef void note_rounds(self) noexcept


cdef class WatermarkInterval:
    # The rows between two watermarks.
    cdef Py_ssize_t missing  # answers
    cdef list answered       # rows that are done, and not emitted yet
    cdef object watermark    # behind them; None: it has not come


cdef class UnorderedAnswers(Answers):
    cdef object intervals          # a deque, which is never empty: those not emitted yet, the earliest first
    cdef WatermarkInterval latest  # of these
    cdef public object add_round   # None, or a function: have a round without rows come
    cdef bint has_asked            # for a round, and none has come since

    cdef bint put_answers(self, list into) except -1


cdef Work answering_work_of(Answers program) noexcept
