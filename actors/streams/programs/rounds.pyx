"""The work of a running graph's stages on rounds of Python rows.

`scheduling/flow/flow.hpp` moves rounds; this module says what a round is: a Batch for each edge, given to a
Program. All functions that stages call hold the interpreter while they run. For the stages of native operators see
`scheduling/flow/native_work.hpp`.
"""

cimport cython
from cpython.list cimport PyList_GET_ITEM
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t, uint32_t

from callboard._inside.sending.values cimport pack, value_of
from callboard.core.asserting cimport holds
from callboard.core.clock cimport monotonic_ns
from callboard.core.memory.node cimport Kind, Node
from callboard.scheduling.flow.stage cimport Division, RowTotals, Work
from callboard.scheduling.flow.values cimport Output, Value, Values
from callboard.streams.programs.program cimport (
    Batch, DividedBatch, Ending, SubBatchOutputs, Program, Watermark, time_as_number,
)

from callboard.streams.errors import StreamError


cdef Work work_of(Program program) noexcept:
    """Return the function that the program's stage calls. It points to the program, so the caller must keep that."""
    cdef Work work = divider_of(program)
    work.process = process
    work.pick = pick
    work.process_sub_batch = do_sub_batch
    work.gather = gather
    return work


cdef Work divider_of(Program program) noexcept:
    """Return the function that the dividing stage before it calls, whose one output is passed on unchanged."""
    cdef Work work
    work.self = <void*>program
    work.process = divide
    work.discard = discard
    return work


cdef void* process(void* this, int64_t serial, void** inputs, RowTotals& counts) noexcept with gil:
    cdef Program program = <Program>this
    cdef list batches = [take(program, i, inputs) for i in range(program.from_chunks.size())]
    assert holds(serial >= 0 and program.ending is not None)
    if is_dropped(program, serial):
        return NULL
    cdef Batch one, batch = whole(batches, program.ending)
    if batch is None and program.looks_every > 0:
        batches = [Batch([]) for _ in batches]
        batch = batches[0]
    if batch is None:
        return NULL
    cdef object error = batch.error
    cdef list into = fresh(program, batch)
    if program.parts:
        (<Batch>into[0]).round = serial
    try:
        for one in batches:
            counts.taken += note_rows(program, one.rows) if program.exits.empty() else rows_among(one.rows)
        program.process_many(batches, into)
    except BaseException as raised:
        error = named(program.name, raised)
    if program.rests:  # other members of a fused stage may have to rest, too
        program.stage.rest_until(max(program.stage.not_before(), monotonic_ns()
                                     + <int64_t>min(program.ns_per_row * len(batch.rows), 1e18)))
        if is_dropped(program, serial):  # cancelled by now
            program.stage.rest_until(0)
    return output_of(program, serial, into, batch.final, error, counts)


cdef bint hand_on(Program program, list into) except -1:
    """Pass on the outputs in `into`, in the middle of the round, and replace them by empty batches. If that is not
    possible now, leave them. False: the run has ended by that."""
    cdef RowTotals counts
    cdef Batch batch, part
    cdef list parts = list(into)
    cdef list empty = [(<Batch>each).follower() for each in into]
    cdef int64_t serial = (<Batch>into[0]).round
    cdef Py_ssize_t port
    cdef void* output
    if not program.stage.may_hand_on_part(serial):
        return True
    for port in range(len(into)):  # no exception from here on: later stages have been entered
        part, batch = into[port], empty[port]
        batch.hide()
        batch.round = serial
        part.final = False
        into[port] = batch
    output = output_of(program, serial, parts, False, None, counts)
    program.stage.note(counts, 0, 0, False)
    program.stage.hand_on_part(serial, output)
    if program.ending.stopped_at.load() > serial:
        return True
    for batch in into:
        batch.final = False  # no output follows the failure
    return False


cdef Batch take(Program program, size_t which, void** inputs):
    """Take over the batch that came by an input; None for an empty one."""
    cdef Values* chunk
    cdef Batch batch
    if inputs[which] == NULL:
        return None
    if not program.from_chunks[which]:
        batch = <Batch>inputs[which]
        Py_DECREF(batch)
        return batch
    chunk = <Values*>inputs[which]
    assert holds(chunk.first >= 0 and not (chunk.final and chunk.error != NULL))
    batch = Batch(rows_of(chunk), chunk.first, chunk.final)
    if chunk.error != NULL:
        batch.error = <object>chunk.error
    if chunk.drop():
        if chunk.error != NULL:
            Py_DECREF(batch.error)
        chunk.free()
    return batch


cdef Batch whole(list batches, Ending ending):
    """Make the inputs of one round complete: an empty batch in the place of None, the same for all. Any of them may
    have the round's fields. Return None if it is empty everywhere."""
    cdef Batch one = None
    cdef Batch batch, empty
    cdef object error = None
    cdef Py_ssize_t i
    for batch in batches:
        if batch is not None:
            one = batch
            error = ending.later(error, batch.error)
    if one is None:
        return None
    empty = one.follower()
    for i in range(len(batches)):
        if batches[i] is None:
            batches[i] = empty
    if error is not one.error:
        one = one.follower()
        one.error = error
    return one


cdef int64_t rows_among(list rows) noexcept:
    """The number of rows among these, without watermarks, which are never counted."""
    cdef Py_ssize_t at
    cdef int64_t count = 0
    for at in range(len(rows)):
        count += type(<object>PyList_GET_ITEM(rows, at)) is not Watermark
    return count


cdef int64_t note_rows(Program program, list rows) noexcept:
    """rows_among(), which also notes the last watermark as the progress of event time."""
    cdef Py_ssize_t at
    cdef int64_t count = 0
    cdef object mark = None
    for at in range(len(rows)):
        if type(<object>PyList_GET_ITEM(rows, at)) is Watermark:
            mark = <object>PyList_GET_ITEM(rows, at)
        else:
            count += 1
    if mark is not None:
        program.watermark.note(time_as_number((<Watermark>mark).instant))
    return count


cdef bint is_dropped(Program program, int64_t serial) noexcept:
    """The run failed in an earlier round, or was cancelled."""
    return serial > program.ending.stopped_at.load()


cdef list fresh(Program program, Batch batch):
    cdef list into = []
    cdef Batch one
    for _ in program.ports:
        one = batch.follower()
        one.hide()
        into.append(one)
    return into


cdef object named(str name, object raised):
    """The run's error for an exception of a program. The programs name the exceptions of user code."""
    if isinstance(raised, StreamError):
        return raised
    error = StreamError(name, None, None)
    error.__cause__ = raised
    return error


cdef void* output_of(
    Program program, int64_t serial, list into, bint final, object error, RowTotals& counts
) noexcept:
    """The output of a round: the list of its batches, given away; null if there is nothing in it."""
    cdef Batch out
    cdef bint empty = not final and error is None
    for out in into:
        counts.given += note_rows(program, out.rows)
        assert holds(error is not None or out.lineages is None or len(out.lineages) == len(out.rows))
        empty = empty and not out.rows
        if error is not None:
            out.error = error
            out.final = False  # what comes after goes on to the failure, but not to the end
    if error is not None and program.exits.empty():
        program.ending.fail(serial, error)
    if empty or program.exits.empty():
        return NULL
    Py_INCREF(into)
    return <void*>into


cdef void* pick(void* this, void* output, uint32_t edge) noexcept with gil:
    """The batch for an edge. In the order of rounds, one thread at a time."""
    cdef Program program = <Program>this
    cdef list into = <list>output
    cdef Py_ssize_t port = program.exits[edge].port
    assert holds(edge < program.exits.size() and (edge == 0 or program.exits[edge - 1].port <= port))
    cdef Batch batch = into[port]
    if edge == 0 or program.exits[edge - 1].port != port:  # edges are in the order of ports
        batch.first = program.passed[port]
        program.passed[port] = batch.first + len(batch.rows)
    if edge + 1 == program.exits.size():
        Py_DECREF(into)
    if not batch.rows and not batch.final and batch.error is None:
        return NULL
    if program.exits[edge].reader != NULL:
        return native_batch(batch, <Program>program.exits[edge].reader)
    Py_INCREF(batch)
    return <void*>batch


cdef void discard(void* this, void* output) noexcept with gil:
    Py_DECREF(<object>output)


cdef void* native_batch(Batch batch, Program reader) noexcept:
    """A batch as a chunk of native values for its reader. A row that has no native value is an error of the reader."""
    cdef Values* chunk = NULL
    cdef Py_ssize_t at = 0
    cdef object error = batch.error
    try:
        chunk = chunk_of(batch.rows, &at)
    except Exception as raised:
        error = StreamError(reader.name, batch.first + at, batch.rows[at])
        error.__cause__ = raised
    if chunk == NULL:
        if not batch.final and error is None:
            return NULL
        chunk = Values.make(0)
    chunk.first = batch.first
    chunk.final = batch.final and error is None
    if error is not None:
        Py_INCREF(error)
        chunk.error = <void*>error
    return <void*>chunk


# --- divided programs ------------------------------------------------------------------------------------


cdef void* divide(void* this, int64_t serial, void** inputs, RowTotals& counts) noexcept with gil:
    cdef Program program = <Program>this
    cdef Batch batch = take(program, 0, inputs)
    cdef DividedBatch divided
    if batch is None or is_dropped(program, serial):
        return NULL
    cdef int64_t rows = rows_among(batch.rows)
    assert holds(rows <= len(batch.rows))
    counts.taken += rows
    counts.given += rows
    try:
        divided = program.divide(batch)
        assert holds(divided.division.rows() == <size_t>len(batch.rows))
        assert holds(<size_t>len(divided.outputs) == divided.division.count())
    except BaseException as raised:
        divided = DividedBatch.__new__(DividedBatch)
        divided.begin(batch, 0)
        divided.error = named(program.name, raised)
    Py_INCREF(divided)
    return <void*>&divided.division


cdef void do_sub_batch(void* this, Division& division, uint32_t number, RowTotals& counts) noexcept with gil:
    cdef Program program = <Program>this
    cdef DividedBatch divided = <DividedBatch>division.batch
    assert holds(number < division.count() and &division == &divided.division)
    for at in division.sub_batch(number).rows:
        counts.taken += type(divided.batch.rows[at]) is not Watermark
    if is_dropped(program, division.serial):
        return
    try:
        program.process_sub_batch(divided, number)
        counts.given += len((<SubBatchOutputs>divided.outputs[number]).outs)
    except BaseException as raised:
        with cython.critical_section(divided):  # other sub-batches may fail just now
            divided.error = named(program.name, raised)


cdef void* gather(void* this, Division& division) noexcept with gil:
    cdef Program program = <Program>this
    cdef DividedBatch divided = <DividedBatch>division.batch
    cdef RowTotals more
    cdef void* output
    cdef SubBatchOutputs outputs
    cdef int64_t serial = division.serial
    cdef object error = divided.error
    cdef bint complete = error is divided.batch.error  # else a sub-batch broke off, and is not whole
    Py_DECREF(divided)  # which the division lies in
    if is_dropped(program, serial):
        return NULL
    cdef list into = fresh(program, divided.batch)
    try:
        if complete:
            program.gather(divided, into)
    except BaseException as raised:
        error = named(program.name, raised)
    output = output_of(program, serial, into, divided.batch.final, error, more)
    for outputs in divided.outputs:
        more.given -= len(outputs.outs)  # which the sub-batches have counted; what came at watermarks is left
    program.stage.note(more, 0, 0, False)
    return output


cdef Values* chunk_of(list rows, Py_ssize_t* at) except? NULL:
    """Return the rows as native values; null without rows. Watermarks end here.

    Raises TypeError or ValueError for a row without a native value, and leaves `at` on it."""
    cdef Output out
    cdef Node node
    cdef Value value
    cdef Values* chunk
    out.expect(len(rows))
    at[0] = -1
    try:
        for row in rows:
            at[0] += 1
            if type(row) is int:  # the others by pack()
                out.push_integer(row, 0)
            elif type(row) is float:
                out.push_real(row, 0)
            elif type(row) is not Watermark:
                pack(&node, row)
                value.integer = node.integer
                value.rest = <int64_t>node.second
                value.kind = node.kind
                value.tag = node.tag
                out.take_over(value)
    except BaseException as error:
        chunk = out.take()
        if chunk != NULL:
            chunk.free()
        if isinstance(error, OverflowError):
            raise ValueError(f"{rows[at[0]]} does not fit into the 64 bits of a native integer") from None
        raise
    return out.take()


cdef list rows_of(Values* chunk):
    """The values as Python objects; the chunk keeps its references."""
    cdef list rows = []
    cdef Node node
    cdef const Value* value = chunk.begin()
    cdef const Value* end = value + chunk.count()
    while value < end:
        if value.kind == Kind.integer and value.tag == 0:
            rows.append(value.integer)
        elif value.kind == Kind.real and value.tag == 0:
            rows.append(value.real)
        else:
            node.kind = value.kind
            node.tag = value.tag
            node.integer = value.integer
            node.second = <void*>value.rest
            rows.append(value_of(&node))
        value += 1
    return rows
