"""Programs of operators with a state, or with one for each key.

Without keys there is one state, whose key is None. With keys and partitions a program works either alone, by
process(), or divided; the states are then in one table or in one for each partition. In both ways the states of
keys are asked, at watermarks and at the end, in the order of their keys' first arrival. That is the order of a
dictionary's keys; sub-batches are merged by the serial number with which a key came.
"""

from bisect import bisect_right
from contextlib import suppress
from operator import index

from cpython.list cimport PyList_GET_ITEM
from cpython.object cimport PyObject_Hash
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libcpp cimport bool as cbool

from callboard.core.asserting cimport holds
from callboard.rows.instants cimport MomentKey, as_given, as_key, instant_of
from callboard.scheduling.flow.stage cimport Division, Range, SubBatch
from callboard.streams.programs.program cimport (
    Batch, DividedBatch, SubBatchOutputs, Program, PyVectorcall_Function, Watermark, call_one, pass_on,
    vectorcallfunc,
)
from callboard.streams.programs.shared_function cimport own

from callboard.core.text import safe_repr
from callboard.frequency.results import Counted
from callboard.frequency.space_saving import SpaceSaving
from callboard.streams.programs.shared_function import shared
from callboard.streams.programs.program import Raised
from callboard.streams.programs.saved import Columns
from callboard.streams.programs.unawaited cimport refuse_unawaited

cdef extern from "callboard/streams/programs/rows/value_hash.hpp" namespace "callboard":
    uint64_t value_hash(object key, uint64_t seed, cbool& is_foreign) except? 0

# For each hot key that is asked for: of `most` keys, a count is too high by 1 in `100 * most` of all rows at most.
cdef int COUNTERS = 100

# The default number of partitions of a keyed operator.
cdef int PARTITIONS_OF_LANE = 4
cdef int LEAST_PARTITIONS = 8


cdef class Stateful(Program):
    """The base of programs with states: derived classes define the effect of a row on a state."""

    def __init__(self, str name, *, key=None, Py_ssize_t partitions=1, partition=None, bint fewer=False,
                 bint marks_time=False, bint marks_end=False, hash_seed=None, str kind="stateful", **options):
        super().__init__(name, kind="partitioned" if key and partitions > 1 else kind, **options)
        self.key = shared(key)
        self.partitions = partitions
        self.partition = shared(partition)
        self.fewer = fewer
        self.hashes_values, self.hash_seed = hash_seed is not None, hash_seed or 0
        self.marks_time = marks_time
        self.marks_end = marks_end
        homes = None if partition is None else {}
        self.table = Table(False, homes)
        self.tables = [Table(True, homes, number) for number in range(partitions)]

    cpdef Py_ssize_t divided_among(self, int lanes) except -1:
        """Return the number of partitions, which may be reduced for this number of lanes.

        Each partition costs 1 to 2 us per round, however few rows it gets. So there are just enough of them to keep the
        lanes busy if keys are spread evenly.
        """
        assert holds(self.stage == NULL)
        if self.fewer:
            self.partitions = min(self.partitions, max(LEAST_PARTITIONS, PARTITIONS_OF_LANE * lanes))
            del self.tables[self.partitions:]
        return self.partitions

    cdef int step(self, Table table, object key, object row, int64_t serial, list outs) except -1:
        raise NotImplementedError

    cdef list mark(self, Table table, object key, object state, object time):
        return []

    cdef bint puts_keys(self):
        """Whether it puts their keys in front of the outputs of rows."""
        return False

    def leave_keys(self):
        """Leave these keys away from now on."""
        self.leaves_keys = self.puts_keys()

    cdef uint64_t hash_of(self, object key) except? 0:
        if self.hashes_values:
            if type(key) is MomentKey:
                key = (<MomentKey>key).instant
            return value_hash(key, self.hash_seed, self.is_foreign)
        if self.numbers is None:
            return <uint64_t>PyObject_Hash(key)
        return self.numbers.setdefault(key, len(self.numbers))

    cdef Py_ssize_t partition_of(self, object key) except -1:
        """Find a key's range, or ask the user's function. ValueError: what that returns is no whole number."""
        if type(self.partition) is list:
            return bisect_right(self.partition, instant_of(as_given(key)))
        number = own(self.partition)(as_given(key))
        if type(number) is not int:
            refuse_unawaited(number)
            try:
                number = index(None if isinstance(number, bool) else number)
            except TypeError:
                raise ValueError(f"a key's partition must be a whole number, got {safe_repr(number)}") from None
        return number % self.partitions

    cpdef bint count_keys(self, int most):
        if self.key is None:
            return False
        self.most_hot, self.came = most, []
        self.hot = SpaceSaving(1.0 / (COUNTERS * most))
        return True

    cpdef tuple hot_keys(self):
        if self.hot is None:
            return ()
        return tuple([Counted(as_given(key), count, error) for key, count, error in self.hot.top(self.most_hot)])

    cdef int note_keys(self, list keys) except -1:
        """Count keys, if that is wanted. Those that cannot be counted, such as NaN, fail elsewhere."""
        if self.hot is None or not keys:
            return 0
        try:
            self.hot.update(keys)
        except Exception:
            for key in keys:
                with suppress(Exception):
                    self.hot.add(key)
        return 0

    cdef object time_at(self, Watermark watermark):
        """Return the time of a watermark that states are given."""
        return watermark.time

    # --- snapshots -----------------------------------------------------------------------------------

    cpdef list snapshot(self, object kept):
        """Keys, states, and the order of the keys' arrival, if tables have it."""
        cdef Table table
        cdef list parts = []
        if self.kind == "stateless":
            return parts
        time = None
        for table in [self.table, *self.tables]:
            time = table.clock.time if time is None else time
            if table.states:
                parts.append(self.columns_of(table))
        return [(time,), *parts]

    cdef object columns_of(self, Table table):
        columns = [list(table.states), self.saved(table)]
        if table.born is not None:
            columns.append(list(table.born.values()))
        return Columns(columns, (0, 2), keys=True, refs=1)

    cpdef restore(self, tuple head, list columns, object kept, bint divided):
        cdef Table table
        cdef list found = []
        cdef int64_t rank
        for table in [self.table, *self.tables]:
            table.clock.time = head[0]
        for each in columns:
            found += zip(*each, strict=True)
        if found and len(found[0]) > 2:
            found.sort(key=arrival_of)
        for rank, (key, state, *given) in enumerate(found):
            if self.key is None:
                self.table.states[None] = self.loaded(self.table, state)
                continue
            key = as_key(key)
            if len(given) > 1:  # another process has divided the keys
                rank, table = given[0], self.tables[given[1]]
            else:
                table = self.home_of(key, divided)
            table.put(key, self.loaded(table, state), rank)

    cdef Table home_of(self, object key, bint divided):
        """The table that a key belongs to."""
        cdef Table table = self.table
        if self.partition is not None:
            table.number = self.partition_of(key)
        elif divided:
            table.number = Division.partition_of(self.hash_of(key), <uint32_t>self.partitions)
        return self.tables[table.number] if divided else table

    cdef list saved(self, Table table):
        return list(table.states.values())

    cdef object loaded(self, Table table, object value):
        return value

    # --- alone ---------------------------------------------------------------------------------------

    cpdef process(self, Batch batch, list into):
        try:
            Program.process(self, batch, into)
        finally:
            if self.hot is not None:
                self.note_keys(self.came)
                self.came.clear()
        if batch.final and self.marks_end:
            self.punctuate(batch, len(batch.rows), into)

    cdef int work(self, Batch batch, Py_ssize_t* at, list into) except -1:
        cdef list rows = batch.rows, outs
        cdef Py_ssize_t n = len(rows)
        cdef int64_t first = batch.first
        cdef Table table = self.table
        cdef bint plain = batch.lineages is None and self.sides is None
        # A run uses one of the two ways, alone or divided.
        assert holds(not any([(<Table>each).states for each in self.tables]))
        outs = (<Batch?>into[0]).rows if plain else []
        key_of = own(self.key)
        cdef vectorcallfunc how = NULL
        if key_of is not None:
            how = PyVectorcall_Function(key_of)
        key = None
        try:
            while at[0] < n:
                row = rows[at[0]]
                if type(row) is Watermark:
                    if self.marks_time:
                        self.punctuate(batch, at[0], into)
                    pass_on(batch, at[0], into)
                else:
                    if key_of is not None:
                        key = call_one(how, key_of, row)
                        key = as_key(key)
                        if self.hot is not None:
                            self.came.append(key)
                        if self.partition is not None:  # it fails here where it would fail there
                            table.number = self.partition_of(key)
                            table.check_home(key, table.homes.get(key, table.number))
                    self.step(table, key, row, first + at[0], outs)
                    if not plain:
                        if outs:
                            self.emit(outs, None if batch.lineages is None else batch.lineages[at[0]], into)
                            outs.clear()
                at[0] += 1
        except TypeError:
            check_hash(key)
            raise
        return 0

    cdef int punctuate(self, Batch batch, Py_ssize_t at, list into) except -1:
        """Emit the states' outputs at the watermark in row `at`, or at the end."""
        for _, outputs, error in self.asked(self.table, batch, at):
            self.settle_each(batch, at, outputs, error, into)
        return 0

    cdef list asked(self, Table table, Batch batch, Py_ssize_t at):
        """Ask the states in a table; (born, outputs, error) for each that has outputs or failed."""
        cdef list answers = []
        time = None
        if at < len(batch.rows):
            time = self.time_at(batch.rows[at])
        for born, key, state in self.due(table, time):
            try:
                outputs = self.mark(table, key, state, time)
                if outputs:
                    answers.append((born, outputs, None))
            except Exception as error:
                answers.append((born, None, error))
                if self.errors == "fail":
                    break
        return answers

    cdef list due(self, Table table, object time):
        """(born, key, state) of those to be asked, in the order of their keys' first arrival."""
        return [
            (0 if table.born is None else table.born[key], key, state)
            for key, state in table.states.items()
        ]

    cdef int settle(self, Batch batch, Py_ssize_t at, list outputs, object error, list into) except -1:
        """Emit outputs, or handle the error that came in their place."""
        if error is None:
            lineage = None
            if batch.lineages is not None:
                lineage = batch.lineages[at] if at < len(batch.rows) else batch.end
            try:
                self.emit(outputs, lineage, into)
                return 0
            except Exception as raised:
                error = raised
        self.failed(batch, at, error, into)
        return 0

    cdef int settle_each(self, Batch batch, Py_ssize_t at, list outputs, object error, list into) except -1:
        """The same, where one output may have raised, and the others are there."""
        cdef list good = []
        if error is None:
            for output in outputs:
                if type(output) is Raised:
                    self.settle(batch, at, good, None, into)
                    self.settle(batch, at, None, output.error, into)
                    good = []
                else:
                    good.append(output)
        return self.settle(batch, at, good, error, into)

    # --- divided -------------------------------------------------------------------------------------

    cpdef DividedBatch divide(self, Batch batch):
        cdef DividedBatch divided = DividedBatch.__new__(DividedBatch)
        cdef Division* division = &divided.division
        cdef Py_ssize_t at = 0
        divided.begin(batch, self.partitions)
        if batch.final and self.marks_end:
            division.concern_all()
        while at < len(batch.rows):
            try:
                divide_rows(self, divided, &at)
            except Exception as error:
                divided.keys[at] = Raised(error)
                division.add_to(0)
                at += 1
        divided.outputs = [SubBatchOutputs() for _ in range(division.count())]
        if self.hot is not None:
            self.note_keys([key for key, row in zip(divided.keys, batch.rows)
                            if type(row) is not Watermark and type(key) is not Raised])
        return divided

    cpdef process_sub_batch(self, DividedBatch divided, uint32_t number):
        cdef Batch batch = divided.batch
        cdef SubBatchOutputs outputs = divided.outputs[number]
        cdef SubBatch* sub_batch = &divided.division.sub_batch(number)
        cdef Table table = self.tables[sub_batch.partition]
        assert holds(not self.table.states and sub_batch.ends.empty())
        cdef size_t at = 0
        cdef Py_ssize_t i
        sub_batch.ends.reserve(sub_batch.rows.size())
        while at < sub_batch.rows.size():
            try:
                do_rows(self, divided, sub_batch, outputs, &at)
            except Exception as error:
                outputs.errors[sub_batch.rows[at]] = error
                if self.errors == "fail":
                    return  # gather() raises at this row, and needs none after it
                sub_batch.ends.push_back(len(outputs.outs))
                at += 1
        assert holds(sub_batch.ends.size() == sub_batch.rows.size())  # the end of each row's outputs
        if batch.final and self.marks_end:
            i = len(batch.rows)
            outputs.marks[i] = self.asked(table, batch, i)

    cpdef gather(self, DividedBatch divided, list into):
        cdef Batch batch = divided.batch
        cdef Py_ssize_t i, n = len(batch.rows)
        cdef uint32_t owner
        cdef SubBatchOutputs outputs
        cdef bint plain = batch.lineages is None and self.sides is None
        cdef list out = (<Batch?>into[0]).rows
        for outputs in divided.outputs:
            plain = plain and not outputs.errors
        divided.check_unchanged()
        for i in range(n):
            if type(<object>PyList_GET_ITEM(batch.rows, i)) is Watermark:
                if self.merge(divided, i, into):
                    pass_on(batch, i, into)
                continue
            owner = divided.division.owner(i)
            outputs = divided.outputs[owner]
            if plain:
                move_next_outs(outputs.outs, divided.division.sub_batch(owner), out)
                continue
            error = outputs.errors.get(i)
            failed = error is not None and self.errors == "fail"
            self.settle(batch, i, None if failed else next_outs(divided, owner), error, into)
        if batch.final and self.marks_end:
            self.merge(divided, n, into)

    cdef bint merge(self, DividedBatch divided, Py_ssize_t at, list into) except -1:
        """Emit the outputs of all sub-batches' states at a watermark, or at the end, by their keys' arrival. Return
        whether to continue: not if a watermark's time cannot be compared, which is one error for all sub-batches."""
        cdef list answers = []
        cdef bint is_row = at < len(divided.batch.rows), goes_on = True
        cdef uint32_t number
        cdef SubBatchOutputs outputs
        if not self.marks_time and is_row:
            return True
        for outputs in divided.outputs:
            if at in outputs.errors:
                self.failed(divided.batch, at, outputs.errors[at], into)
                goes_on = False
                break
        for number, outputs in enumerate(divided.outputs):
            answers += outputs.marks[at]
            if is_row:
                next_outs(divided, number)
        answers.sort(key=born_of)
        for _, made, error in answers:
            assert holds((made is None) != (error is None))
            self.settle_each(divided.batch, at, made, error, into)
        return goes_on


cdef int divide_rows(Stateful stateful, DividedBatch divided, Py_ssize_t* at) except -1:
    """Divide the rows from `at` on, and leave `at` on the row that raised."""
    cdef Division* division = &divided.division
    cdef list rows = divided.batch.rows, keys = divided.keys
    key_of = own(stateful.key)
    cdef vectorcallfunc how = PyVectorcall_Function(key_of)
    key = None
    try:
        while at[0] < len(rows):
            row = <object>PyList_GET_ITEM(rows, at[0])
            if type(row) is not Watermark:
                key = call_one(how, key_of, row)
                key = as_key(key)
                keys[at[0]] = key
                if stateful.partition is None:
                    division.add(stateful.hash_of(key))
                else:
                    division.add_to(<uint32_t>stateful.partition_of(key))
            else:
                divided.add_watermark(stateful.marks_time)
            at[0] += 1
    except TypeError:
        check_hash(key)
        raise
    return 0


cdef int do_rows(
    Stateful stateful, DividedBatch divided, SubBatch* sub_batch, SubBatchOutputs outputs, size_t* at
) except -1:
    """Process a sub-batch's rows from `at` on, and leave `at` on the row that raised."""
    cdef list rows = divided.batch.rows, keys = divided.keys, outs = outputs.outs
    cdef int64_t first = divided.batch.first
    cdef Table table = stateful.tables[sub_batch.partition]
    cdef Py_ssize_t i
    divided.check_unchanged()
    while at[0] < sub_batch.rows.size():
        i = sub_batch.rows[at[0]]
        row = <object>PyList_GET_ITEM(rows, i)
        if type(row) is Watermark:
            outputs.marks[i] = []
            outputs.marks[i] = stateful.asked(table, divided.batch, i)
        else:
            key = <object>PyList_GET_ITEM(keys, i)
            if type(key) is Raised:
                raise key.error
            stateful.step(table, key, row, first + i, outs)
        sub_batch.ends.push_back(len(outs))
        at[0] += 1
    return 0


cdef int check_hash(object key) except -1:
    """Raise a TypeError for a key that has no hash."""
    try:
        PyObject_Hash(key)
    except TypeError as error:
        raise TypeError(f"the function of key_by() must return hashable keys, such as tuples, got "
                        f"{safe_repr(as_given(key))}") from error
    return 0


cdef list next_outs(DividedBatch divided, uint32_t number):
    """Return the outputs of the next of a sub-batch's rows."""
    cdef list outs = (<SubBatchOutputs?>divided.outputs[number]).outs
    cdef Range outputs = next_range(divided.division.sub_batch(number), outs)
    return outs[outputs.begin:outputs.end]


cdef int move_next_outs(list outs, SubBatch& sub_batch, list out) except -1:
    """Append the outputs of the next of a sub-batch's rows."""
    cdef Range outputs = next_range(sub_batch, outs)
    cdef Py_ssize_t at
    if outputs.end > <size_t>len(outs):
        raise IndexError(f"a sub-batch has {len(outs)} outputs, got {outputs.end}")
    for at in range(outputs.begin, outputs.end):
        out.append(<object>PyList_GET_ITEM(outs, at))
    return 0


cdef Range next_range(SubBatch& sub_batch, list outs) except *:
    if sub_batch.gathered >= sub_batch.ends.size():
        raise IndexError(f"a sub-batch of {sub_batch.ends.size()} rows has no further one")
    cdef Range outputs = Division.next(sub_batch)
    assert holds(outputs.begin <= outputs.end and outputs.end <= <size_t>len(outs))
    return outputs


cdef born_of(answer):
    return (<tuple>answer)[0]


cdef arrival_of(row):
    return (<tuple>row)[2]
