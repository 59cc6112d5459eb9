"""Programs that do something to a state, each for one kind of state."""

from copy import deepcopy

cimport cython
from cpython.dict cimport PyDict_GetItemWithError
from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from callboard.streams.programs.program cimport Batch, Watermark, outputs_of, pass_on
from callboard.streams.programs.program import Raised, Side
from callboard.streams.programs.stateful cimport Stateful, Table


cdef class Objects(Stateful):
    """A state is an object with `receive`, made by `make()`; see protocols.py.

    The object of an operator without keys is there from the start. `drops` says that objects tell when
    they are idle, and `paired` that outputs of keys are emitted as (key, output).
    """

    def __init__(self, str name, make, *, bint drops=False, bint paired=False, **options):
        super().__init__(name, **options)
        self.make = make
        self.drops = drops
        self.paired = paired and self.key is not None
        if self.key is None:
            self.table.put(None, self.fresh(self.table), 0)

    cdef object fresh(self, Table table):
        return self.make()

    cdef object state_of(self, Table table, object key, int64_t serial):
        cdef PyObject* found = PyDict_GetItemWithError(table.states, key)
        if found != NULL:
            return <object>found
        state = self.fresh(table)
        table.put(key, state, serial)
        return state

    cdef int step(self, Table table, object key, object row, int64_t serial, list outs) except -1:
        cdef PyObject* found = PyDict_GetItemWithError(table.states, key)
        state = self.fresh(table) if found == NULL else <object>found
        result = state.receive(row)
        cdef list outputs = None if result is None else self.named(key, outputs_of(result))
        if found == NULL:
            table.put(key, state, serial)  # only now: a row that raises leaves no key behind
        if outputs is not None:
            outs.extend(outputs)
        return 0

    cdef list mark(self, Table table, object key, object state, object time):
        if time is None:
            return self.named(key, outputs_of(state.on_final()))
        outputs = self.named(key, outputs_of(state.on_watermark(time)))
        if self.drops and self.key is not None and state.is_idle():
            table.drop(key)
        return outputs

    cdef list named(self, object key, list outputs):
        if not self.paired:
            return outputs
        return [output if type(output) in (Side, Raised) else (key, output) for output in outputs]


cdef class Lots(Objects):
    """One object with `receive_many`, which is handed the rows between two watermarks of a batch."""

    cpdef process(self, Batch batch, list into):
        cdef list rows = batch.rows
        cdef Py_ssize_t n = len(rows), begin = 0, end
        while begin < n:
            end = begin + 1
            if type(rows[begin]) is Watermark:
                if self.marks_time:
                    self.punctuate(batch, begin, into)
                pass_on(batch, begin, into)
            else:
                while end < n and type(rows[end]) is not Watermark:
                    end += 1
                self.receive(batch, begin, end, into)
            begin = end
        if batch.final and self.marks_end:
            self.punctuate(batch, n, into)

    cdef int receive(self, Batch batch, Py_ssize_t begin, Py_ssize_t end, list into) except -1:
        cdef Py_ssize_t at
        try:
            outputs = outputs_of(self.table.states[None].receive_many(batch.rows[begin:end]))
            # Where these origins mean anything, there is no Lots.
            self.emit(outputs, None if batch.origins is None else batch.origins[begin], into)
        except Exception as error:  # nobody knows at which row, so all of them failed
            for at in range(begin, end):
                self.failed(batch, at, error, into)
        return 0


cdef class Scan(Stateful):
    """A state is an accumulator, which a function makes of itself and a row; emitted at each row."""

    cdef object function
    cdef object initial
    cdef bint copied

    def __init__(self, str name, initial, function, **options):
        super().__init__(name, **options)
        self.function = function
        self.initial = initial
        self.copied = deepcopy(initial) is not initial  # something that can change is not shared
        if self.key is None:
            self.table.put(None, self.fresh(), 0)

    cdef object fresh(self):
        return deepcopy(self.initial) if self.copied else self.initial

    cdef object accumulate(self, Table table, object key, object row, int64_t serial):
        cdef PyObject* found = PyDict_GetItemWithError(table.states, key)
        if found == NULL:
            state = self.function(self.fresh(), row)
            table.put(key, state, serial)
        else:
            state = self.function(<object>found, row)
            table.states[key] = state
        return state

    cdef int step(self, Table table, object key, object row, int64_t serial, list outs) except -1:
        state = self.accumulate(table, key, row, serial)
        outs.append(state if self.key is None else (key, state))
        return 0


cdef class Fold(Scan):
    """The same, emitted at the end."""

    def __init__(self, str name, initial, function, **options):
        super().__init__(name, initial, function, marks_end=True, **options)

    cdef int step(self, Table table, object key, object row, int64_t serial, list outs) except -1:
        self.accumulate(table, key, row, serial)
        return 0

    cdef list mark(self, Table table, object key, object state, object time):
        return [state if self.key is None else (key, state)]


cdef class Count(Stateful):
    """A state is the number of rows so far; emitted at each row."""

    cdef int step(self, Table table, object key, object row, int64_t serial, list outs) except -1:
        cdef PyObject* found = PyDict_GetItemWithError(table.states, key)
        cdef MutableInteger number
        if found == NULL:
            number = MutableInteger.__new__(MutableInteger)
            table.put(key, number, serial)
        else:
            number = <MutableInteger>found
        number.value += 1
        outs.append(number.value if self.key is None else (key, number.value))
        return 0


@cython.final
cdef class MutableInteger:
    """A number that is changed where it is, so that a row costs one look into the table."""

    cdef int64_t value
