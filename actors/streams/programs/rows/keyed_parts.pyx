"""The parts of rounds that worker processes get for keyed operators, and what these processes do with them.

A part has the sub-batches for one process: for each its partition, the places of its rows in the round, the rows, and
their keys. The program makes it, or a process that runs operators before the keyed one: divided_parts().
"""

from struct import Struct

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.list cimport PyList_GET_ITEM
from cpython.long cimport PyLong_AsLongLongAndOverflow
from libc.stdint cimport int64_t, uint32_t

from callboard.rows.instants cimport as_given, as_key
from callboard.scheduling.flow.stage cimport Division, SubBatch
from callboard.streams.programs.program cimport Batch, DividedBatch, SubBatchOutputs, Watermark
from callboard.streams.programs.rows.stateful cimport Stateful
from callboard.streams.programs.rows.tables cimport Table

from callboard.streams.programs.program import Raised

# Stands for the key of a row that is not sent.
NOT_SENT = Raised(ValueError("it was not sent"))

# The least number of whole numbers for which packing them pays.
cdef Py_ssize_t FEW = 8

# The beginning of a part that is sent on: the number of rows that came before the round.
FIRST = Struct("<q")


def packed(list values):
    """Return whole numbers of 64 bits as bytes, which costs far less than their pickle; other values as they are."""
    cdef Py_ssize_t at, count = len(values)
    cdef int is_too_large = 0
    cdef bytes found
    cdef int64_t* to
    if count < FEW or type(values[0]) is not int:
        return values
    found = PyBytes_FromStringAndSize(NULL, count * sizeof(int64_t))
    to = <int64_t*>PyBytes_AS_STRING(found)
    for at in range(count):
        value = <object>PyList_GET_ITEM(values, at)
        if type(value) is not int:
            return values
        to[at] = PyLong_AsLongLongAndOverflow(value, &is_too_large)
        if is_too_large:
            return values
    return found


def unpacked(values):
    """Return what packed() got."""
    cdef const int64_t* numbers
    cdef Py_ssize_t at
    if type(values) is not bytes:
        return values
    numbers = <const int64_t*>PyBytes_AS_STRING(values)
    return [numbers[at] for at in range(len(<bytes>values) // sizeof(int64_t))]


cdef list packed_groups(list groups):
    return [(partition, places, packed(rows), packed(keys)) for partition, places, rows, keys in groups]


cdef list owned_of(DividedBatch divided, Py_ssize_t count):
    """Return for each of `count` processes that get something the numbers of its sub-batches."""
    cdef dict owned = {}
    cdef uint32_t number
    for number in range(divided.division.count()):
        owned.setdefault(divided.division.sub_batch(number).partition % count, []).append(number)
    return list(owned.values())


cdef list groups_of(DividedBatch divided, list numbers, dict refused):
    """Return some sub-batches as they are sent. Rows whose keys raised are `refused`, and not in them."""
    cdef SubBatch* sub_batch
    cdef uint32_t number, place
    cdef list groups = [], rows, keys
    for number in numbers:
        sub_batch = &divided.division.sub_batch(number)
        rows, keys = [], []
        for place in sub_batch.rows:
            row, key = divided.batch.rows[place], divided.keys[place]
            if type(key) is Raised:
                refused[place] = key.error
                row, key = None, NOT_SENT
            rows.append(row)
            keys.append(as_given(key))
        groups.append((sub_batch.partition, places_of(sub_batch), rows, keys))
    return groups


cdef bytes places_of(SubBatch* sub_batch):
    """Return the places of its rows in their round, as unsigned integers of 32 bits."""
    cdef Py_ssize_t size = sub_batch.rows.size() * sizeof(uint32_t)
    return PyBytes_FromStringAndSize(<const char*>sub_batch.rows.data(), size)


# --- in a process -------------------------------------------------------------------------------------


def divided_parts(Stateful program, Batch batch, Py_ssize_t count):
    """Divide a round among `count` processes, where its rows are.

    Returns the divided round; and the partitions of its rows, the errors of keys, by rows, and the sub-batches for each
    process that gets some. Instead of these None, if a key came whose hash is another one in the next process.
    """
    cdef bytes partitions
    cdef dict refused = {}
    cdef Py_ssize_t i
    cdef uint32_t owner
    cdef uint32_t* to
    program.is_foreign = False
    cdef DividedBatch divided = program.divide(batch)
    if program.is_foreign:
        return divided, None
    parts = [packed_groups(groups_of(divided, numbers, refused)) for numbers in owned_of(divided, count)]
    partitions = PyBytes_FromStringAndSize(NULL, len(batch.rows) * sizeof(uint32_t))
    to = <uint32_t*>PyBytes_AS_STRING(partitions)
    for i in range(len(batch.rows)):
        owner = divided.division.owner(i)
        to[i] = owner if owner == ALL_OR_NONE else divided.division.sub_batch(owner).partition
    return divided, (partitions, refused, parts)


def watermarks_of(Batch batch):
    """Return the watermarks of a round, by their places."""
    cdef dict found = {}
    cdef Py_ssize_t at
    for at in range(len(batch.rows)):
        if type(<object>PyList_GET_ITEM(batch.rows, at)) is Watermark:
            found[at] = batch.rows[at]
    return found


def keys_of(DividedBatch divided):
    """Return the keys of a round, by rows, with watermarks in their places."""
    return [row if type(row) is Watermark else as_given(key) for row, key in zip(divided.batch.rows, divided.keys)]


def answer_part(Stateful program, tuple part):
    """Handle the sub-batches of a process. Returns for each its outputs; how many there are behind each row, or None
    for one each; its errors, by rows; and the outputs of states, by watermarks."""
    cdef DividedBatch divided = DividedBatch.__new__(DividedBatch)
    cdef Division* division = &divided.division
    first, n, final, groups = part
    cdef Py_ssize_t count = n
    divided.begin(Batch([None] * count, first, final), program.partitions)
    division.concern_all()  # so the numbers of sub-batches are those of partitions
    for _ in range(count):
        division.add_to_none()
    divided.outputs = [None] * program.partitions
    return [answered(program, divided, partition, places, unpacked(rows), unpacked(keys))
            for partition, places, rows, keys in groups]


cdef tuple answered(
    Stateful program, DividedBatch divided, uint32_t partition, bytes given, list rows, list keys
):
    cdef SubBatch* sub_batch
    cdef SubBatchOutputs outputs = SubBatchOutputs()
    cdef Py_ssize_t at, n = len(divided.batch.rows)
    cdef Py_ssize_t count = len(given) // sizeof(uint32_t)
    cdef const uint32_t* places = <const uint32_t*>PyBytes_AS_STRING(given)
    if not count == len(rows) == len(keys):
        raise ValueError(f"expected a place and a key for each of {len(rows)} rows, got {count} and {len(keys)}")
    if partition >= program.partitions:
        raise ValueError(f"expected a partition below {program.partitions}, got {partition}")
    sub_batch = &divided.division.sub_batch(partition)
    sub_batch.rows.assign(places, places + count)
    for at in range(count):
        if places[at] >= n:
            raise ValueError(f"expected a place below {n}, got {places[at]}")
        divided.batch.rows[places[at]] = rows[at]
        divided.keys[places[at]] = as_key(keys[at])
    divided.outputs[partition] = outputs
    program.process_sub_batch(divided, partition)
    ends = None
    if len(outputs.outs) != count or not is_one_each(sub_batch):
        ends = [end for end in sub_batch.ends]
    return outputs.outs, ends, outputs.errors, outputs.marks


cdef bint is_one_each(SubBatch* sub_batch) noexcept:
    """Whether there is one output for each row."""
    cdef size_t at
    for at in range(sub_batch.ends.size()):
        if sub_batch.ends[at] != at + 1:
            return False
    return sub_batch.ends.size() == sub_batch.rows.size()


def state_of(Stateful program, bint is_divided):
    """Return the state of a program as restore() takes it back: its head, and columns in pieces. Those of a divided one
    have a last column, the partitions."""
    cdef Table table
    cdef list pieces = [], numbers = [table.number for table in program.tables if table.states]
    head, *columns = program.snapshot(None)
    for at, column in enumerate(columns):
        for begin in range(0, len(column), column.piece):
            piece = column.part(begin)
            if is_divided:
                piece.append([numbers[at]] * len(piece[0]))
            pieces.append(piece)
        column.let_go()
    return head, pieces
