"""Native operators: they run without the interpreter, on native values, and so on all workers in parallel.

A native operator is a Cython class that derives from NativeOperator; see `native.pxd` for the methods to override.
`Stream.native()` and `KeyedStream.native()` add it to a graph. Rows become native values on the way in, and Python
objects on the way out, like messages to native actors.
"""

cimport cython
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t, uint32_t, uint64_t

from callboard.core.asserting cimport holds
from callboard.scheduling.flow.native_work cimport NativeWork
from callboard.scheduling.flow.stage cimport Division
from callboard.scheduling.flow.values cimport Output, Value, Values
from callboard.streams.programs.joins.join_index cimport ROWS_AT_ONCE, RowIndex
from callboard.streams.programs.joins.window_rows cimport WindowRow, WindowRule
from callboard.streams.programs.program cimport Batch, Ending, Program
from callboard.streams.programs.rounds cimport chunk_of, rows_of

from callboard.native import NativeFailure
from callboard.core.text import safe_repr
from callboard.streams.errors import SnapshotError, StreamError
from callboard.streams.programs.saved import Columns

__all__ = ["NativeOperator", "NativePredicate"]

cdef object MOST_KEY = 2**64 - 1
# From this many comparisons on, the interpreter lock is released.
cdef size_t MANY = 4096


cdef class NativeOperator:
    """An operator whose work is done by C functions.

    The class attribute `kind` says how many workers may run one object's `process` at once: "stateless" means any
    number, "stateful" one, in the order of the stream. A keyed operator has one object for each partition, each run by
    one worker at a time. `__init__` is an ordinary method, called when a run begins.

    A subclass with state may have two ordinary methods for snapshots of runs. `snapshot()` returns the state, made of
    values that messages between processes may have, such as bytes; for a keyed operator it is a dict of the keys in
    this object and their states. `restore(state)` restores it before the first row. The thread that takes the snapshot
    calls them, while no worker runs the object.
    """

    kind = "stateless"

    cdef void process(self, const Value* values, uint64_t count, Output* out) noexcept nogil:
        out.fail(b"this native operator does not override process()")

    cdef void finish(self, Output* out) noexcept nogil:
        pass

    cdef uint64_t key_of(self, const Value* value) noexcept nogil:
        return <uint64_t>value.integer


cdef class NativePredicate:
    """A condition on the partners of a join, as a C function: see `docs/streams-native.md`.

    `__init__` is an ordinary method. An object may serve several lanes at once, so `matches` must not
    change it.
    """

    cdef bint matches(self, const Value* left, const Value* right) noexcept nogil:
        return False


cdef class NativeProgram(Program):
    """A native operator in one run: see scheduling/flow/native_work.hpp. Its rows are handed to it in
    chunks, so they have no lineage."""

    def __init__(self, str name, make, Py_ssize_t partitions=0, **options):
        cdef NativeWork* work = &self.native
        if self.objects is not None:
            raise RuntimeError("a native program is made once")
        self.objects = [make() for _ in range(partitions or 1)]
        self.partitions = partitions
        kind = "partitioned" if partitions else self.objects[0].kind
        super().__init__(name, kind=kind, **options)
        self.releases_gil = True
        self.in_chunks = True
        for one in self.objects:
            work.objects.push_back(<void*>one)
        work.process = <void (*)(void*, const Value*, uint64_t, Output*) noexcept nogil>call_process
        work.finish = <void (*)(void*, Output*) noexcept nogil>call_finish
        work.key_of = <uint64_t (*)(void*, const Value*) noexcept nogil>call_key_of
        work.owner = <void*>self
        work.make_error = make_error
        work.retain_error = retain_error
        work.drop_error = drop_error
        work.report = report_error
        work.edges = 1
        self.enter(Ending(), 0, 1)  # its own, for a sequential run

    cdef int enter(self, Ending ending, int position, int inputs) except -1:
        Program.enter(self, ending, position, inputs)
        self.native.stopped_at = &ending.stopped_at
        return 0

    cpdef list snapshot(self, object kept):
        if self.objects is None:
            raise RuntimeError("the program was not made")
        first = self.objects[0]
        if not hasattr(first, "snapshot"):
            if self.kind == "stateless":
                return []
            raise SnapshotError(
                f"operator {self.name!r} is native and {self.kind}, and {type(first).__qualname__} has no snapshot() "
                "and restore(state) for its state"
            )
        if not hasattr(first, "restore"):
            raise SnapshotError(
                f"operator {self.name!r}: {type(first).__qualname__} has snapshot(), and no restore() to take that back"
            )
        if not self.partitions:
            return [(first.snapshot(),)]
        keys, states = [], []
        for one in self.objects:
            some = one.snapshot()
            if type(some) is not dict:
                raise SnapshotError(
                    f"operator {self.name!r} is keyed: snapshot() must return a dict of keys and states, got "
                    f"{safe_repr(some)}"
                )
            keys += [key & MOST_KEY for key in some]
            states += some.values()
        return [(None,), Columns([keys, states], (0,))]

    cpdef restore(self, tuple head, list columns, object kept, bint divided):
        cdef list found = [{} for _ in self.objects or ()]
        if not self.partitions:
            self.objects[0].restore(*head)
            return
        for keys, states in columns:
            for key, state in zip(keys, states, strict=True):
                found[Division.partition_of(<uint64_t>key, <uint32_t>self.partitions)][key] = state
        for one, some in zip(self.objects, found, strict=True):
            one.restore(some)

    cpdef process(self, Batch batch, list into):
        """The same by one thread, for sequential runs."""
        if self.native.objects.empty():
            raise RuntimeError("the program was not made")
        cdef Py_ssize_t at = 0
        cdef Values* chunk = NULL
        try:
            chunk = chunk_of(batch.rows, &at)
        except Exception as error:
            self.end_with(StreamError(self.name, batch.first + at, batch.rows[at]), error)
        if chunk == NULL and not batch.final:
            return
        if chunk == NULL:
            chunk = Values.make(0)
        chunk.final = batch.final
        cdef Values* outputs = self.native.alone(chunk, self.partitions > 0)
        if outputs == NULL:
            return
        error = <object>outputs.error if outputs.error != NULL else None
        (<Batch?>into[0]).rows.extend(rows_of(outputs))
        self.native.let_go(outputs)
        if error is not None:
            raise error


cdef void call_process(NativeOperator one, const Value* values, uint64_t count, Output* out) noexcept nogil:
    one.process(values, count, out)


cdef void call_finish(NativeOperator one, Output* out) noexcept nogil:
    one.finish(out)


cdef uint64_t call_key_of(NativeOperator one, const Value* value) noexcept nogil:
    return one.key_of(value)


cdef void* make_error(void* program, const char* reason) noexcept with gil:
    error = StreamError((<Program>program).name, None, None)
    error.__cause__ = NativeFailure(reason.decode("utf-8", "replace"))
    Py_INCREF(error)
    return <void*>error


cdef void retain_error(void* error) noexcept with gil:
    Py_INCREF(<object>error)


cdef void drop_error(void* error) noexcept with gil:
    Py_DECREF(<object>error)


cdef void report_error(void* program, int64_t serial, void* error) noexcept with gil:
    (<Program>program).ending.fail(serial, <object>error)
    Py_DECREF(<object>error)


@cython.final
cdef class NativeIndex(RowIndex):
    """Compares each pair."""

    def __init__(self, WindowRule rule, size_t lane, size_t lanes, *, NativePredicate predicate, bint once):
        super().__init__(rule, lane, lanes)
        self.predicate, self.once = predicate, once
        self.of_number, self.gone = {}, []

    cdef RowIndex go_on(self, list rows):
        cdef Py_ssize_t begin
        for begin in range(0, len(rows), ROWS_AT_ONCE):
            self.find(rows[begin:begin + ROWS_AT_ONCE])  # what they find was found before
        return self

    cdef object find(self, object chunk):
        cdef list rows = chunk, found = [], partners
        cdef WindowRow kept, other
        cdef size_t i
        for kept in rows:
            partners = []
            found.append(partners)
            self.join.add(kept.side, kept.number)
            try:
                self.expire(kept.time)
                if not kept.is_alone:
                    self.compare(kept.row)
                self.keep(kept)
            except Exception as error:  # of its time, or its kind
                partners.append((None, error))
                self.join.refuse()
                self.push_out(kept)
        if self.join.due() < MANY:
            self.match()
        else:
            with nogil:
                self.match()
        self.compared = self.join.compared()
        for i in range(self.join.matches.size()):
            kept = rows[self.join.matches[i].row]
            other = self.of_number[self.join.matches[i].partner]
            if not (other.failed or (self.once and kept.side == 1 and other.matched)):
                (<list>found[self.join.matches[i].row]).append(other)
        for number in self.gone:
            del self.of_number[number]
        self.gone.clear()
        assert holds(len(self.of_number) == len(self.windows[0]) + len(self.windows[1]))
        return found

    cdef int compare(self, object row) except -1:
        """Have a row compared. Raises TypeError and ValueError."""
        cdef Py_ssize_t at
        cdef Values* chunk = chunk_of([row], &at)
        self.join.compare(chunk.begin()[0])
        chunk.free()
        return 0

    cdef int match(self) except -1 nogil:
        cdef size_t row, place
        cdef const Value* mine
        cdef const Value* others
        cdef bint is_partner
        for row in range(self.join.rows()):
            if self.join.begin(row):
                mine, others = self.join.value(row), self.join.others(row)
                for place in range(self.join.count(row)):
                    if self.join.side(row) == 0:
                        is_partner = self.predicate.matches(mine, others + place)
                    else:
                        is_partner = self.predicate.matches(others + place, mine)
                    if is_partner:
                        self.join.found(row, place)
            self.join.end(row)
        return 0

    cdef int stored(self, WindowRow kept) except -1:
        self.join.store()
        assert holds(kept.number not in self.of_number)
        self.of_number[kept.number] = kept
        return 0

    cdef int left(self, WindowRow kept) except -1:
        self.join.expire(kept.side)
        self.gone.append(kept.number)
        return 0
