"""Programs of stateless operators: any number of threads may be in process() of one at once."""

from libc.stdint cimport int64_t, uint64_t

from callboard.core.mix cimport random_number
from callboard.streams.programs.program cimport (
    Batch, Program, PyVectorcall_Function, Watermark, call_one, outputs_of, pass_on, vectorcallfunc,
)
from callboard.streams.programs.rounds cimport hand_on
from callboard.streams.programs.shared_function cimport own
from callboard.streams.programs.unawaited cimport is_true, refuse_unawaited

from callboard.streams.programs.shared_function import shared

cdef extern from "Python.h":
    bint PyIter_Check(object what)


cdef class Map(Program):
    """One output for each row: what a function returns."""

    cdef object function
    cdef bint chooses  # the output is the row, if the function is true for it

    def __init__(self, str name, function, **options):
        super().__init__(name, **options)
        self.function = shared(function)

    cdef int work(self, Batch batch, Py_ssize_t* at, list into) except -1:
        cdef list rows = batch.rows, lineages = batch.lineages
        cdef Batch main = into[0]
        cdef list out = main.rows
        cdef Py_ssize_t n = len(rows)
        cdef bint chooses = self.chooses
        function = own(self.function)
        cdef vectorcallfunc how = PyVectorcall_Function(function)
        while at[0] < n:
            row = rows[at[0]]
            if type(row) is Watermark:
                pass_on(batch, at[0], into)
            else:
                if not chooses:
                    out.append(call_one(how, function, row))
                elif is_true(call_one(how, function, row)):
                    out.append(row)
                else:
                    at[0] += 1
                    continue
                if lineages is not None:
                    main.lineages.append(lineages[at[0]])
            at[0] += 1
        return 0


cdef class Filter(Map):
    """The rows for which a function is true."""

    def __cinit__(self):
        self.chooses = True


# The number of outputs of one row in memory before they are passed on.
cdef Py_ssize_t MOST_IN_PART = 8192


cdef class FlatMap(Map):
    """Any number of outputs for each row. Those of an iterator leave in parts if all later operators allow it. Not
    with errors="skip" or "side": a row that raises gives nothing then."""

    def __init__(self, str name, function, **options):
        super().__init__(name, function, **options)
        self.may_part = self.errors == "fail"

    cdef int work(self, Batch batch, Py_ssize_t* at, list into) except -1:
        cdef list rows = batch.rows, lineages = batch.lineages, outputs
        cdef list out = (<Batch?>into[0]).rows
        cdef Py_ssize_t n = len(rows)
        cdef bint plain = lineages is None and self.sides is None
        function = own(self.function)
        cdef vectorcallfunc how = PyVectorcall_Function(function)
        while at[0] < n:
            row = rows[at[0]]
            if type(row) is Watermark:
                pass_on(batch, at[0], into)
            else:
                result = call_one(how, function, row)
                if self.parts and PyIter_Check(result):
                    refuse_unawaited(result)
                    outputs = self.last_of(result, None if lineages is None else lineages[at[0]], into)
                    if outputs is None:
                        return 0
                    out = (<Batch>into[0]).rows
                else:
                    outputs = outputs_of(result, self.ending)
                if plain:
                    out.extend(outputs)
                else:
                    self.emit(outputs, None if lineages is None else lineages[at[0]], into)
            at[0] += 1
        return 0

    cdef list last_of(self, object outputs, object lineage, list into):
        """Take the outputs of a row, pass on parts of these, and return the last part; None if the run has ended."""
        cdef list taken = []
        for output in outputs:
            taken.append(output)
            if self.ending.stopped_at.load() < 0:
                return None
            if len(taken) == MOST_IN_PART:
                self.emit(taken, lineage, into)
                taken = []
                if not hand_on(self, into):
                    return None
        return taken


cdef class Branch(Program):
    """Each row goes to the port of the first function that is true for it, else to the last port."""

    cdef list functions

    def __init__(self, str name, list functions, **options):
        super().__init__(name, **options)
        self.functions = [shared(function) for function in functions]

    cdef int work(self, Batch batch, Py_ssize_t* at, list into) except -1:
        cdef list rows = batch.rows
        cdef Py_ssize_t n = len(rows), port
        cdef list functions = [own(function) for function in self.functions]
        while at[0] < n:
            row = rows[at[0]]
            if type(row) is Watermark:
                pass_on(batch, at[0], into)
            else:
                port = 0
                for function in functions:
                    if is_true(call_one(PyVectorcall_Function(function), function, row)):
                        break
                    port += 1
                add(batch, at[0], into[port])
            at[0] += 1
        return 0


cdef class Sample(Program):
    """The first of each `every` rows; or without it a fraction of them, chosen by their serial numbers and a
    seed, so always the same ones."""

    cdef int64_t every
    cdef uint64_t limit
    cdef uint64_t seed

    def __init__(self, str name, int64_t every=0, double fraction=0, uint64_t seed=0, **options):
        super().__init__(name, **options)
        self.every = every
        self.limit = <uint64_t>(fraction * 2.0**53)
        self.seed = seed

    cdef int work(self, Batch batch, Py_ssize_t* at, list into) except -1:
        cdef Py_ssize_t n = len(batch.rows)
        cdef uint64_t serial
        while at[0] < n:
            serial = <uint64_t>(batch.first + at[0])
            if type(batch.rows[at[0]]) is Watermark:
                pass_on(batch, at[0], into)
            elif (serial % <uint64_t>self.every == 0 if self.every
                  else random_number(self.seed, serial) >> 11 < self.limit):
                add(batch, at[0], into[0])
            at[0] += 1
        return 0


cdef class Paced(Program):
    """All rows, unchanged. The run enforces `rate`, in rows per second."""

    def __init__(self, str name, double rate, **options):
        super().__init__(name, kind="stateful", **options)
        self.ns_per_row = 1e9 / rate

    cpdef process(self, Batch batch, list into):
        (<Batch?>into[0]).rows = batch.rows
        (<Batch?>into[0]).lineages = batch.lineages


cdef class Number(Program):
    """Numbers rows: gives them their lineage, before they enter branches that a union joins again.

    A lineage need only be unique, and ordered, within its round, because branches meet round by
    round; so it is the row's position in its batch. Branches within branches put the position below
    the 32 bits of the lineage that the row has already; their union takes it away again.
    """

    cpdef process(self, Batch batch, list into):
        cdef Batch out = into[0]
        cdef Py_ssize_t i, n = len(batch.rows)
        out.rows = batch.rows
        if batch.lineages is None:
            out.lineages = list(range(n))
            out.end = n
        else:
            out.lineages = [(lineage << 32) | i for i, lineage in enumerate(batch.lineages)]
            out.end = None if batch.end is None else (batch.end << 32) | n


cdef int add(Batch batch, Py_ssize_t at, Batch chosen) except -1:
    chosen.rows.append(batch.rows[at])
    if batch.lineages is not None:
        chosen.lineages.append(batch.lineages[at])
    return 0
