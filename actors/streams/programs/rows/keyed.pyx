"""Programs that change a state, each for one kind of state."""

from copy import deepcopy
from heapq import heappop, heappush

cimport cython
from cpython.dict cimport PyDict_GetItemWithError
from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from callboard.core.asserting cimport holds
from callboard.rows.instants cimport as_given
from callboard.streams.programs.program cimport Batch, Program, Watermark, outputs_of, pass_on
from callboard.streams.errors import FailedRow
from callboard.streams.programs.program import Raised, SideOutput
from callboard.streams.programs.rows.stateful cimport Stateful, born_of
from callboard.streams.programs.rows.tables cimport Table
from callboard.streams.programs.saved cimport Late
from callboard.streams.programs.shared_function cimport own
from callboard.streams.programs.unawaited cimport is_true, refuse_unawaited

from callboard.core.text import safe_repr
from callboard.streams.programs.saved import Columns
from callboard.streams.programs.shared_function import shared


cdef class Objects(Stateful):
    """A state is an object with `receive`, made by `make()`; see protocols.py.

    The object of an operator without keys is there from the start. `drops` says that the objects of keys
    tell when they are idle, `silent` that objects have no on_watermark(), `paired` that outputs of keys are
    emitted as (key, output), and `skips` that objects tell what they have dropped of a row.
    """

    def __init__(self, str name, make, *, bint drops=False, bint silent=False, bint paired=False, bint skips=False,
                 **options):
        super().__init__(name, **options)
        self.make = make
        self.drops = drops
        self.silent = silent
        self.skips = skips
        self.paired = paired and self.key is not None
        if self.key is None:
            self.table.put(None, self.fresh(self.table), 0)

    cdef object fresh(self, Table table):
        return self.make()

    cdef bint puts_keys(self):
        return self.paired

    cdef list outputs_of_row(self, object key, object result):
        cdef list outputs = outputs_of(result, self.ending)
        return outputs if self.leaves_keys else self.named(key, outputs)

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
        cdef list outputs = None if result is None else self.outputs_of_row(key, result)
        if self.skips:
            for error in state.take_skipped():
                self.row_counts._skipped(FailedRow(self.name, serial, row, error))
        if found == NULL:
            table.put(key, state, serial)  # only now: a row that raises leaves no key
        if outputs is not None:
            outs.extend(outputs)
        return 0

    cdef list mark(self, Table table, object key, object state, object time):
        if time is None:
            return self.named(key, outputs_of(state.on_final(), self.ending))
        outputs = [] if self.silent else self.named(key, outputs_of(state.on_watermark(time), self.ending))
        if self.drops and is_true(state.is_idle()):
            table.drop(key)
        return outputs

    cpdef list snapshot(self, object kept):
        cdef list parts = Stateful.snapshot(self, kept)
        if len(parts) == 1:  # no key has come: a class that cannot be saved is known all the same
            parts[0] += (saved_object(self.fresh(self.table)),)
        return parts

    cdef list saved(self, Table table):
        return [saved_object(state) for state in table.states.values()]

    cdef object loaded(self, Table table, object value):
        state = self.fresh(table)
        if hasattr(state, "restore"):
            refuse_unawaited(state.restore(value))
            return state
        if type(value) is not type(state):
            raise TypeError(f"the state of a {type(state).__qualname__} is not {safe_repr(value)}")
        return value

    cdef list named(self, object key, list outputs):
        if not self.paired:
            return outputs
        key = as_given(key)
        return [output if type(output) in (SideOutput, Raised) else (key, output) for output in outputs]


cdef object saved_object(state):
    """The state of an object: itself, if it has no snapshot()."""
    if not hasattr(state, "snapshot"):
        return state
    if not hasattr(state, "restore"):
        raise TypeError(f"{type(state).__qualname__} has snapshot(), and no restore() to take that back")
    saved = state.snapshot()
    refuse_unawaited(saved)
    return saved


cdef class Chunks(Objects):
    """One object with `receive_many`, which gets the rows between two watermarks of a batch."""

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
            outputs = outputs_of(self.table.states[None].receive_many(batch.rows[begin:end]), self.ending)
            # A graph in which these lineages matter has no Chunks.
            self.emit(outputs, None if batch.lineages is None else batch.lineages[begin], into)
        except Exception as error:  # the row is unknown, so all of them failed
            for at in range(begin, end):
                self.failed(batch, at, error, into)
        return 0


cdef class Timed(Objects):
    """Objects that tell when they need a watermark, so that a watermark costs nothing for all others.

    A state is made by `make(clock)`; the clock has the time of the latest watermark. Its `due` is a
    time before which its on_watermark() has nothing to do, or None if the state may be forgotten.
    `scheduled` belongs to the program: the state's time in its table's heap, or None.
    All of these times are instants.
    """

    def __init__(self, str name, make, **options):
        super().__init__(name, make, **options)
        self.table.born = {None: 0} if self.key is None else {}

    cdef object fresh(self, Table table):
        return self.make(table.clock)

    cdef int step(self, Table table, object key, object row, int64_t serial, list outs) except -1:
        cdef Py_ssize_t keys = len(table.states)
        state = self.state_of(table, key, serial)
        try:
            result = state.receive(row)
        finally:
            self.schedule_row(table, key, state, len(table.states) > keys)
        outs.extend(self.outputs_of_row(key, result))
        return 0

    cpdef restore(self, tuple head, list columns, object kept, bint divided):
        cdef Table table
        Objects.restore(self, head, columns, kept, divided)
        for table in [self.table, *self.tables]:
            for key, state in list(table.states.items()):
                self.schedule(table, key, state)

    cdef object time_at(self, Watermark watermark):
        return watermark.instant

    cdef list mark(self, Table table, object key, object state, object time):
        try:
            return Objects.mark(self, table, key, state, time)
        finally:
            if time is not None:
                self.schedule(table, key, state)

    cdef int schedule_row(self, Table table, object key, object state, bint is_new) except -1:
        """The same after a row. If it raises, a new key is not kept, because no row of it is."""
        try:
            return self.schedule(table, key, state)
        except BaseException:
            if is_new:
                table.drop(key)
            raise

    cdef int schedule(self, Table table, object key, object state) except -1:
        due = state.due
        if due is None:
            if self.key is not None:
                table.drop(key)
        elif state.scheduled is None or due < state.scheduled:
            if table.heap:
                due < table.heap[0][0]  # noqa: B015 - what raises is never in the heap
            state.scheduled = due
            assert holds(key in table.born)
            heappush(table.heap, (due, table.born[key], key))
        return 0

    cdef list due(self, Table table, object time):
        cdef list found = []
        if time is None:
            return Objects.due(self, table, time)
        if table.clock.time is not None and time <= table.clock.time:
            return found
        if table.heap:
            time < table.heap[0][0]  # noqa: B015 - what raises moves no time
        table.clock.time = time
        while table.heap and table.heap[0][0] <= time:
            due, _, key = heappop(table.heap)
            state = table.states.get(key)
            assert holds(state is None or key in table.born)
            if state is not None and state.scheduled == due:  # else the entry is outdated
                state.scheduled = None
                found.append((table.born[key], key, state))
        found.sort(key=born_of)
        return found


cdef class Scan(Stateful):
    """A state is an accumulator, which a function updates with each row; emitted at each row, or at
    the end."""

    cdef object function
    cdef object initial
    cdef bint copied

    def __init__(self, str name, initial, function, **options):
        super().__init__(name, **options)
        self.function = shared(function)
        self.initial = initial
        self.copied = deepcopy(initial) is not initial  # something that can change is not shared
        if self.key is None:
            self.table.put(None, self.fresh(), 0)

    cdef object columns_of(self, Table table):
        """Besides the table, the list of states refers to each of them."""
        keys, states = list(table.states), list(table.states.values())
        columns = [keys, states] if table.born is None else [keys, states, list(table.born.values())]
        table.late = Late(keys, states)
        return Columns(columns, (0, 2), keys=True, refs=2, late=table.late)

    cdef bint puts_keys(self):
        return self.key is not None

    cdef object fresh(self):
        return deepcopy(self.initial) if self.copied else self.initial

    cdef int step(self, Table table, object key, object row, int64_t serial, list outs) except -1:
        cdef PyObject* found = PyDict_GetItemWithError(table.states, key)
        if found == NULL:
            state = own(self.function)(self.fresh(), row)
            refuse_unawaited(state)
            table.put(key, state, serial)
        else:
            if table.late is not None:
                table.keep_late(key, <object>found)
            state = own(self.function)(<object>found, row)
            refuse_unawaited(state)
            table.states[key] = state
        if not self.marks_end:
            outs.append(state if self.key is None or self.leaves_keys else (as_given(key), state))
        return 0

    cdef list mark(self, Table table, object key, object state, object time):
        if table.late is not None:
            table.keep_late(key, state)
        return [state if self.key is None else (as_given(key), state)]


cdef class Count(Stateful):
    """A state is the number of rows so far; emitted at each row."""

    cdef list saved(self, Table table):
        return [(<MutableInteger>number).value for number in table.states.values()]

    cdef object loaded(self, Table table, object value):
        cdef MutableInteger number = MutableInteger.__new__(MutableInteger)
        number.value = value
        return number

    cdef int step(self, Table table, object key, object row, int64_t serial, list outs) except -1:
        cdef PyObject* found = PyDict_GetItemWithError(table.states, key)
        cdef MutableInteger number
        if found == NULL:
            number = MutableInteger.__new__(MutableInteger)
            table.put(key, number, serial)
        else:
            number = <MutableInteger>found
        number.value += 1
        outs.append(number.value if self.key is None else (as_given(key), number.value))
        return 0


@cython.final
cdef class MutableInteger:
    """A number that is changed in place, so that a row costs one look-up in the table."""

    cdef int64_t value


cdef class Gather(Program):
    """Makes an output of each `size` rows, and of the remaining ones at the end.

    `function(rows)` returns it, or None; and the errors of rows that are not in it, by their places in the list.
    Each is an error of that row.
    """

    cdef object function
    cdef object size
    cdef list rows     # that wait
    cdef list serials  # theirs

    def __init__(self, str name, function, size, **options):
        super().__init__(name, kind="stateful", **options)
        self.function, self.size = function, size
        self.rows, self.serials = [], []

    cpdef list snapshot(self, object kept):
        return [(), Columns([self.rows.copy(), self.serials.copy()])]

    cpdef restore(self, tuple head, list columns, object kept, bint divided):
        if head:  # of version 1: a table with one state, which is the rows
            self.rows = columns[0][1][0]
            return
        for rows, serials in columns:
            self.rows += rows
            self.serials += serials

    cpdef process(self, Batch batch, list into):
        if len(self.serials) < len(self.rows):  # of version 1: numbered as if no watermark was among them
            self.serials = [*range(batch.first - len(self.rows), batch.first)]
        Program.process(self, batch, into)
        if batch.final and self.rows:
            self.give(batch.end, into)

    cdef int work(self, Batch batch, Py_ssize_t* at, list into) except -1:
        cdef list rows = batch.rows
        while at[0] < len(rows):
            row = rows[at[0]]
            if type(row) is Watermark:
                pass_on(batch, at[0], into)
            else:
                self.rows.append(row)
                self.serials.append(batch.first + at[0])
                if len(self.rows) == self.size:
                    self.give(None if batch.lineages is None else batch.lineages[at[0]], into)
            at[0] += 1
        return 0

    cdef int give(self, object lineage, list into) except -1:
        """Emit the output of the waiting rows, with the lineage of the row that completes it."""
        cdef list rows = self.rows, serials = self.serials
        self.rows, self.serials = [], []
        output, errors = self.function(rows)
        for place, error in errors.items():
            self.failed_at(serials[place], rows[place], error, lineage, into)
        if output is not None:
            self.emit([output], lineage, into)
        return 0
