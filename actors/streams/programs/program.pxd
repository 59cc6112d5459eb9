# Programs: the work of a graph's stages on batches of rows.
from libc.stdint cimport int64_t, uint32_t
from libcpp.vector cimport vector

from callboard.scheduling.flow.stage cimport AtomicCount, Division, Stage

cdef extern from "Python.h":
    ctypedef void* vectorcallfunc
    vectorcallfunc PyVectorcall_Function(object function)

cdef extern from "callboard/streams/programs/program.hpp" namespace "callboard":
    object call_one(vectorcallfunc how, object function, object row)

    cppclass EventProgress:
        void note(double time)
        double get()


cdef class Watermark:
    # A punctuation among the rows: event time has come to `time`.
    cdef readonly object time
    cdef object instant  # what that is compared as


cdef class Batch:
    # A round's rows at one place of the graph. Read by any number of stages, so changed by none
    # once the stage that made it has handed it on.
    cdef public list rows
    cdef public int64_t first  # how many rows passed this place before; so rows[i] has serial first + i
    cdef public bint final     # the last round: after the rows, programs emit what they still hold
    cdef public list lineages  # None, or for each row where its source row stood before the branches parted
    cdef public object end     # the lineage of what is emitted at the end of the last round
    cdef public object error   # None, or the StreamError that ends the run at the end of this round
    cdef int64_t round         # the number of the round, in what a program makes in a run

    cpdef Batch follower(self)
    cdef int hide(self) except -1


cdef class SubBatchOutputs:
    cdef list outs        # of its rows, one after the other
    cdef dict errors      # row -> what it raised
    cdef dict marks       # row of a watermark, or one past the last row -> [(born, outputs, error)]


cdef class DividedBatch:
    # A batch on its way through a keyed program: made by divide(), read by gather().
    cdef Division division
    cdef Batch batch
    cdef list keys        # of all rows of the batch
    cdef list outputs     # SubBatchOutputs, one for each sub-batch
    cdef object error     # None, or the StreamError that ends the run at the end of this round

    cdef int begin(self, Batch batch, Py_ssize_t partitions) except -1
    cdef void add_watermark(self, bint marks_time) noexcept
    cdef int check_unchanged(self) except -1


cdef class Ending:
    # How a run ends: shared by its programs.
    cdef AtomicCount stopped_at   # rounds after this one are dropped
    cdef object failed            # ((serial, -position), error) of the first failure, or None
    cdef dict positions           # of the operators, by name
    cdef list resting             # programs that wait for answers, and drop rounds when they look

    cdef int fail(self, int64_t serial, object error) except -1
    cdef object later(self, object first, object second)
    cdef object position_of(self, object error)
    cdef void look_again(self) noexcept


cdef struct Exit:
    Py_ssize_t port
    void* reader              # the program there if it takes chunks of native values, else NULL; borrowed


cdef class Program:
    # One operator's work in one run.
    cdef readonly str name
    cdef readonly str kind           # "stateless", "stateful" or "partitioned": see program.pyx
    cdef readonly Py_ssize_t partitions
    cdef readonly tuple ports        # the names of the outputs; the first is the main one
    cdef readonly str errors         # "fail", "skip" or "side"
    cdef public bint releases_gil
    cdef public object row_counts     # of rows that do not come through; see running/row_counts.py
    cdef Py_ssize_t failures          # the port of failures, or -1
    cdef dict sides                   # name -> port of the other outputs beside the main one, or None
    cdef bint in_chunks               # it takes and gives chunks of native values
    cdef bint may_part                # the outputs of a row may leave in parts
    cdef bint parts                   # they do, where there are many
    cdef double ns_per_row            # it wants no further input for so long after a row; mostly 0
    cdef readonly double looks_every  # seconds: it wants to be called so often though nothing comes; mostly 0

    # In a flow: see rounds.pyx.
    cdef Ending ending
    cdef Stage* stage
    cdef vector[bint] from_chunks  # for each input, whether a chunk comes there that is to be read as rows
    cdef vector[Exit] exits        # its edges, in the order of ports
    cdef vector[int64_t] passed    # for each port, how many rows left by it
    cdef bint rests                # after rows, as ns_per_row says
    cdef EventProgress watermark   # the latest that it handed on, or took as a sink
    cdef EventProgress newest      # the latest time of a row, where it reads times

    cpdef process(self, Batch batch, list into)
    cpdef process_many(self, list batches, list into)
    cpdef DividedBatch divide(self, Batch batch)
    cpdef process_sub_batch(self, DividedBatch divided, uint32_t number)
    cpdef gather(self, DividedBatch divided, list into)
    cpdef bint wants_heartbeats(self)
    cpdef tuple waiting_rows(self)
    cpdef tuple work_of_lanes(self)
    cpdef bint count_keys(self, int most)
    cpdef tuple hot_keys(self)
    cpdef list snapshot(self, object kept)
    cpdef restore(self, tuple head, list columns, object kept, bint divided)
    cpdef close(self)

    cpdef Py_ssize_t divided_among(self, int lanes) except -1
    cdef int enter(self, Ending ending, int position, int inputs) except -1
    # For those that rest at their stage: something is new; the stage is gone.
    cdef void look_again(self) noexcept
    cdef void leave(self) noexcept

    # For programs. work() is process() from row `at` on, and leaves `at` on the row that raised.
    cdef int work(self, Batch batch, Py_ssize_t* at, list into) except -1
    cdef int failed(self, Batch batch, Py_ssize_t at, object error, list into) except -1
    cdef str hook(self)
    cdef int failed_at(self, int64_t serial, object row, object error, object lineage, list into) except -1
    # Raise what ends the run, because of an error; whether an error is that.
    cdef int end(self, object error) except -1
    cdef int end_with(self, object ending, object error) except -1
    cdef bint ends_with(self, object error) except -1
    cdef int emit(self, list outputs, object lineage, list into) except -1


cdef double time_as_number(object instant) noexcept
cdef Watermark watermark_at(object time)
cdef list outputs_of(object result, Ending ending)
cdef int pass_on(Batch batch, Py_ssize_t at, list into) except -1
