"""The counters of a summary, in a form that suits its keys, and the merge of two summaries.

The user of a store ensures that no other thread changes it at the same time, except by calls that its design allows
to several threads.
"""

from cpython.object cimport PyObject, PyObject_Hash
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_SET_ITEM
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libcpp.string cimport string
from libcpp.vector cimport vector

from callboard.core.asserting cimport holds
from callboard.rows.instants cimport as_given, as_key
from callboard.core.mix cimport mix
from callboard.frequency.counting.counters cimport ObjectCounters, hash_of_object, no_slot
from callboard.frequency.counting.key_column cimport KeyColumn
from callboard.frequency.counting.keys cimport ByteRun
from callboard.frequency.designs.summary cimport (
    ByteAnswer, ByteRow, Design, IntegerAnswer, IntegerRow, KeyEstimate, make_integers, make_runs, part_of,
)
from callboard.frequency.key_batch cimport KeyBatch, append_key, as_bytes, as_integers, as_objects, key_of, undecided

import os

from callboard.core.checks import LARGEST
from callboard.frequency.results import Counted

cdef extern from *:
    """
    // A tuple of a class of named tuples, to be filled in.
    static PyObject* new_row(PyObject* type) {
        return ((PyTypeObject*)type)->tp_alloc((PyTypeObject*)type, 3);
    }
    """
    tuple new_row(object type)

# Fewer keys are counted sooner than the interpreter's lock is released and taken again.
cdef size_t FEW = 64
cdef size_t ALL = 0xffffffff

# With a random seed, keys cannot be chosen to collide.
cdef uint64_t SEED = mix(int.from_bytes(os.urandom(8), "little"))


cdef inline tuple row_of(object key, object count, object error):
    """`Counted(key, count, error)`, without a call of Python's."""
    cdef tuple row = new_row(Counted)
    Py_INCREF(key)
    PyTuple_SET_ITEM(row, 0, key)
    Py_INCREF(count)
    PyTuple_SET_ITEM(row, 1, count)
    Py_INCREF(error)
    PyTuple_SET_ITEM(row, 2, error)
    return row


cdef class SummaryState:
    """Rows, as `Counted`; the total; and how often a key without a row may have come."""

    def __cinit__(self, list rows, uint64_t total, uint64_t unseen):
        self.rows = rows
        self.total = total
        self.unseen = unseen


cdef SummaryState merged(SummaryState mine, SummaryState theirs, uint32_t most):
    """The `most` greatest counters of two summaries.

    If only one of them has a counter for a key, the other may have seen it up to `unseen` times, as any key without
    a counter.
    """
    cdef dict counters = {
        as_key(key): Counted(key, count + theirs.unseen, error + theirs.unseen) for key, count, error in mine.rows
    }
    cdef uint64_t unseen = mine.unseen + theirs.unseen
    cdef list rows
    for given, count, error in theirs.rows:
        key = as_key(given)
        had = counters.get(key)
        if had is None:
            counters[key] = Counted(given, count + mine.unseen, error + mine.unseen)
        else:
            counters[key] = Counted(given, had.count + count - theirs.unseen, had.error + error - theirs.unseen)
    rows = sorted(counters.values(), key=lambda each: -each.count)
    if <uint32_t>len(rows) > most:
        unseen = max(unseen, <uint64_t>rows[most].count)
        del rows[most:]
    return SummaryState(rows, mine.total + theirs.total, unseen)


cdef class Store:
    """Counters. The first keys of an empty store determine its mode."""

    def __cinit__(self, int design, uint32_t capacity, unsigned streams, unsigned threads, int mode=undecided):
        self.design = <Design>design
        self.capacity = capacity
        self.streams = streams
        self.threads = threads
        self.mode = mode
        self.kept = []
        if mode == as_integers:
            self.integers = make_integers(self.design, capacity, SEED, streams, threads)
        elif mode == as_bytes:
            self.runs = make_runs(self.design, capacity, SEED, streams, threads)
        elif mode == as_objects:
            self.objects = new ObjectCounters(capacity, SEED)

    def __dealloc__(self):
        del self.integers
        del self.runs
        del self.objects

    # --- counting: `stream` is the caller's; for objects there is one -----------------------------

    cdef int add(self, unsigned stream, KeyBatch batch) except -1:
        """Count keys that were read in this store's mode, which is not that of objects."""
        cdef const KeyColumn* column = &batch.column
        assert holds(batch.mode == self.mode and self.mode != as_objects)
        if column.size() < FEW:
            self.add_column(stream, column)
        else:
            with nogil:
                self.add_column(stream, column)
        return 0

    cdef int add_column(self, unsigned stream, const KeyColumn* column) except -1 nogil:
        """Count keys, in a store of integers or of bytes that they are for."""
        if column.has_runs:
            self.runs.add(stream, column.runs.data(), column.weights_or_null(), column.size())
        else:
            self.integers.add(stream, column.integers.data(), column.weights_or_null(), column.size())
        return 0

    cdef int add_array(self, unsigned stream, const int64_t* keys, size_t count) except -1:
        """Count integers, in a store of integers."""
        with nogil:
            self.integers.add(stream, keys, NULL, count)
        return 0

    cdef int add_object(self, object key, uint64_t weight, list late) except -1:
        """Count a key, in a store of objects. `late` gets the objects to release later: that may run their code."""
        cdef uint64_t key_hash = hash_of_object(SEED, PyObject_Hash(key))
        cdef uint32_t slot = self.objects.find(<PyObject*>key, key_hash)
        cdef uint32_t used
        if slot == no_slot:  # there is room for it in the lists before the counter refers to it
            late.append(None)
            self.kept.append(key)
        try:
            used = self.objects.add_at(slot, <PyObject*>key, key_hash, weight)
        except BaseException:
            if slot == no_slot:
                self.kept.pop()
            raise
        if slot == no_slot and used != len(self.kept) - 1:
            late[len(late) - 1] = self.kept[used]
            self.kept[used] = key
            self.kept.pop()
        return 0

    # --- answers ---------------------------------------------------------------------------------

    cdef SummaryState ask(self, size_t most, double support):
        """The keys above that fraction, at most `most`, the greatest first."""
        cdef IntegerAnswer integers
        cdef ByteAnswer runs
        cdef vector[uint32_t] slots
        cdef uint64_t bar
        cdef size_t i
        cdef list rows = []
        if self.mode == as_integers:
            with nogil:
                integers = self.integers.ask(most, support)
            for i in range(integers.rows.size()):
                assert holds(integers.rows[i].error <= integers.rows[i].count)
                assert holds(i == 0 or integers.rows[i].count <= integers.rows[i - 1].count)
                rows.append(row_of(integers.rows[i].key, integers.rows[i].count, integers.rows[i].error))
            return SummaryState(rows, integers.total, integers.unseen)
        if self.mode == as_bytes:
            with nogil:
                runs = self.runs.ask(most, support)
            for i in range(runs.rows.size()):
                assert holds(runs.rows[i].error <= runs.rows[i].count)
                assert holds(i == 0 or runs.rows[i].count <= runs.rows[i - 1].count)
                key = key_of(runs.rows[i].key.kind, runs.rows[i].key.data.data(), runs.rows[i].key.data.size())
                rows.append(row_of(key, runs.rows[i].count, runs.rows[i].error))
            return SummaryState(rows, runs.total, runs.unseen)
        if self.mode == undecided:
            return SummaryState(rows, 0, 0)
        bar = part_of(support, self.objects.total())
        slots = self.objects.above(bar) if bar else self.objects.top(most)
        if slots.size() > most:
            slots.resize(most)
        for slot in slots:
            rows.append(row_of(as_given(self.kept[slot]), self.objects.count_of(slot), self.objects.error_of(slot)))
        return SummaryState(rows, self.objects.total(), self.objects.unseen())

    cdef SummaryState whole(self):
        """All rows; of partitions with more counters than the capacity, the greatest."""
        cdef SummaryState state = self.ask(ALL, 0)
        if <uint32_t>len(state.rows) > self.capacity:
            state.unseen = max(state.unseen, <uint64_t>state.rows[self.capacity].count)
            del state.rows[self.capacity:]
        return state

    cdef object estimate(self, object given):
        cdef string room
        cdef ByteRun run
        cdef uint32_t slot
        cdef int64_t number
        cdef KeyEstimate found
        cdef SummaryState all_of_them
        cdef Py_hash_t hash_of_key
        key = as_key(given)
        hash_of_key = PyObject_Hash(key)
        if self.mode == undecided:
            return Counted(given, 0, 0)
        if self.mode == as_objects:
            slot = self.objects.find(<PyObject*>key, hash_of_object(SEED, hash_of_key))
            if slot == no_slot:
                return Counted(given, self.objects.unseen(), self.objects.unseen())
            return Counted(given, self.objects.count_of(slot), self.objects.error_of(slot))
        if type(key) is bool or type(key) is float and key.is_integer():
            key = int(key)
        if self.mode == as_integers and type(key) is int and -LARGEST - 1 <= key <= LARGEST:
            number = key
            with nogil:
                found = self.integers.estimate(number)
            return Counted(given, found.count, found.error)
        if self.mode == as_bytes and append_key(key, room, &run):
            if run.data == NULL:
                run.data = room.data()
            with nogil:
                found = self.runs.estimate(run)
            return Counted(given, found.count, found.error)
        # A key that is kept as itself only in another mode may be equal to one that is here.
        all_of_them = self.ask(ALL, 0)
        if type(key) not in (str, bytes, float, type(None)):
            for mine, count, error in all_of_them.rows:
                if PyObject_Hash(mine) == hash_of_key and mine == key:
                    return Counted(given, count, error)
        return Counted(given, all_of_them.unseen, all_of_them.unseen)

    cdef uint32_t size(self) except? 0:
        cdef uint32_t found
        if self.mode == as_integers:
            with nogil:  # it may wait for threads that count
                found = self.integers.size()
            return found
        if self.mode == as_bytes:
            with nogil:
                found = self.runs.size()
            return found
        return self.objects.size() if self.mode == as_objects else 0

    cdef uint64_t total(self):
        cdef uint64_t found
        if self.mode == as_integers:
            with nogil:
                found = self.integers.total()
            return found
        if self.mode == as_bytes:
            with nogil:
                found = self.runs.total()
            return found
        return self.objects.total() if self.mode == as_objects else 0

    # --- other stores ----------------------------------------------------------------------------

    cdef Store widened(self, int mode):
        """The same counters, in a mode for more kinds of keys."""
        return self.loaded(mode, self.whole())

    cdef Store loaded(self, int mode, SummaryState state):
        """A store of this design with these counters, of unequal keys.

        Those with counts below `unseen` say less than that does, and are left out.
        """
        cdef Store made = Store(self.design, self.capacity, self.streams, self.threads, mode)
        cdef IntegerAnswer integers
        cdef ByteAnswer runs
        cdef IntegerRow integer_row
        cdef ByteRow byte_row
        cdef ByteRun run
        cdef string room
        cdef list rows = [row for row in state.rows if row.count >= state.unseen] if state.unseen else state.rows
        if mode == as_integers:
            for key, count, error in rows:
                integer_row.key, integer_row.count, integer_row.error = key, count, error
                integers.rows.push_back(integer_row)
            integers.total, integers.unseen = state.total, state.unseen
            made.integers.load(integers)
        elif mode == as_bytes:
            for key, count, error in rows:
                room.clear()
                append_key(key, room, &run)
                byte_row.key.data.assign(room.data() if run.data == NULL else run.data, run.size)
                byte_row.key.kind = run.kind
                byte_row.count, byte_row.error = count, error
                runs.rows.push_back(byte_row)
            runs.total, runs.unseen = state.total, state.unseen
            made.runs.load(runs)
        elif mode == as_objects:
            for key, count, error in rows:
                key = as_key(key)
                made.kept.append(key)
                made.objects.put(<PyObject*>key, hash_of_object(SEED, PyObject_Hash(key)), count, error)
            made.objects.set_total(state.total)
            made.objects.set_unseen(state.unseen)
        return made
