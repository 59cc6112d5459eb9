# What a stage of a graph does with a batch of rows.
from libc.stdint cimport int64_t

cdef extern from *:
    """
    // PyObject_CallOneArg() for one function and many rows: how it is called is found out once.
    static inline PyObject* call_one(vectorcallfunc how, PyObject* function, PyObject* row) {
        if (how == nullptr) return PyObject_CallOneArg(function, row);
        PyObject* arguments[] = {nullptr, row};  // the first is for who is called to use
        return how(function, arguments + 1, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
    }
    """
    ctypedef void* vectorcallfunc
    vectorcallfunc PyVectorcall_Function(object function)
    object call_one(vectorcallfunc how, object function, object row)


cdef class Watermark:
    # A punctuation among the rows: event time has come to `time`.
    cdef readonly object time


cdef class Batch:
    # A round's rows at one place of the graph. Read by any number of stages, so changed by none
    # once the stage that made it has handed it on.
    cdef public list rows
    cdef public int64_t first  # how many rows passed this place before; so rows[i] has serial first + i
    cdef public bint final     # the last round: after the rows, programs emit what they still hold
    cdef public list origins   # None, or for each row where its origin stood before the branches parted
    cdef public object end     # the origin of what is emitted at the end of the last round
    cdef public object error   # None, or the StreamError that ends the run at the end of this round

    cpdef Batch follower(self)
    cdef int hide(self) except -1


cdef class Part:
    # One partition's share of a batch: made by split(), filled by process_part(), read by gather().
    cdef readonly Batch batch
    cdef readonly Py_ssize_t partition
    cdef list indices     # which rows, in order
    cdef list keys        # of all rows of the batch, shared by its parts
    cdef list outs        # what the rows gave, one after the other
    cdef list ends        # for each index, how long outs was after it
    cdef Py_ssize_t taken  # how many of indices gather() has read
    cdef dict errors      # index -> what its row raised
    cdef dict marks       # index of a watermark, or one past the last row -> [(born, outputs, error)]


cdef class Program:
    # One operator's work in one run.
    cdef readonly str name
    cdef readonly str kind           # "stateless", "stateful" or "partitioned": see program.pyx
    cdef readonly Py_ssize_t partitions
    cdef readonly tuple ports        # the names of the outputs; the first is the main one
    cdef readonly str errors         # "fail", "skip" or "side"
    cdef public bint releases_gil
    cdef public object context       # the run, as far as programs see it: see context.py
    cdef Py_ssize_t failures         # the port of failures, or -1
    cdef dict sides                  # name -> port of the other outputs beside the main one, or None

    cpdef process(self, Batch batch, list into)
    cpdef process_many(self, list batches, list into)
    cpdef list split(self, Batch batch)
    cpdef process_part(self, Part part)
    cpdef gather(self, Batch batch, list parts, list into)
    cpdef close(self)

    # For programs. work() is process() from row `at` on, and leaves `at` on the row that raised.
    cdef int work(self, Batch batch, Py_ssize_t* at, list into) except -1
    cdef int failed(self, Batch batch, Py_ssize_t at, object error, list into) except -1
    cdef int emit(self, list outputs, object origin, list into) except -1


cdef Watermark watermark_at(object time)
cdef list outputs_of(object result)
cdef int pass_on(Batch batch, Py_ssize_t at, list into) except -1
