"""Inspection of a running graph: records of its slices of work, and why each operator is waiting."""

from libc.stdint cimport int64_t, uint64_t

from callboard.core.clock cimport monotonic_ns
from callboard.core.monitoring.records cimport DispatchRecord, record_stage
from callboard.scheduling.context cimport Context, current_context
from callboard.scheduling.flow.flow cimport Pool
from callboard.scheduling.flow.stage cimport Stage
from callboard.streams.programs.program cimport Program
from callboard.streams.programs.rows.answers cimport Answers
from callboard.streams.running.flow cimport GraphFlow

from callboard._inside.answers.wait_cause import WaitReason
from callboard.observing.wait_report import WaitRecord

cdef extern from "callboard/core/monitoring/recorder.hpp" namespace "callboard" nogil:
    pass


def record_slices(GraphFlow flow, uint64_t first):
    """Make workers record each slice of work at an operator, before the first round. Return the operators' names.

    Their numbers begin with `first`. Operators that are run as one have one number. Threads that are no workers,
    such as a sender's, record nothing.
    """
    cdef Pool* pool
    cdef size_t i
    cdef list names = []
    for i in range(flow.flow.stages().size()):
        stage_at(flow, i).number = first + i
        names.append(name_of_stage(flow, stage_at(flow, i)))
    for pool in flow.pools:
        pool.note_slices(note_slice)
    return names


cdef void note_slice(const Stage& stage, int64_t begin, int64_t end, uint64_t rows) noexcept nogil:
    cdef Context* context = current_context()
    cdef DispatchRecord record
    if context.recorder == NULL:
        return
    record.kind = record_stage
    record.actor = stage.number
    record.time = end
    record.spent = end - begin
    record.began = begin
    record.messages = rows
    context.recorder.ring.write(record)


cdef Stage* stage_at(GraphFlow flow, size_t position) noexcept:
    return flow.flow.stages()[position].get()


cdef str name_of_stage(GraphFlow flow, Stage* stage):
    """Return the names of the operators that are run as this stage."""
    cdef Program program
    cdef list names = []
    for number in sorted(flow.programs):
        program = flow.programs[number]
        if program.stage == stage:
            names.append(program.name)
    return " + ".join(names) or f"division of {(<Program>flow.of_stages[stage.position]).name}"


def waits_of_operators(GraphFlow flow, dict inputs):
    """Tell why operators are waiting, and why further rows cannot come in. Any thread.

    `inputs` maps each operator with several inputs to the names of these.
    """
    cdef Pool* pool
    cdef size_t i
    cdef list busy
    cdef dict waits = {}
    for pool in flow.pools:
        busy = []
        for i in range(pool.stages().size()):
            if pool.stages()[i].lanes() > 0:
                busy.append(name_of_stage(flow, pool.stages()[i]))
        for i in range(pool.stages().size()):
            waits[pool.stages()[i].position] = wait_of(flow, pool.stages()[i], busy, inputs)
    found = [waits[position] for position in sorted(waits)]
    if not flow.flow.has_room():
        words = f"wait: the window of {flow.window} batches is full, by the operator {fullest_stage(flow)!r}"
        found.insert(0, WaitRecord("entry", "rows to come in", WaitReason.WINDOW, words))
    return found


cdef str fullest_stage(GraphFlow flow):
    """Return the name of the operator that holds up the others: one that is working, and has the most rounds."""
    cdef size_t i
    last = max([(*work_at(flow, stage_at(flow, i)), i) for i in range(flow.flow.stages().size())])[-1]
    return name_of_stage(flow, stage_at(flow, last))


cdef tuple work_at(GraphFlow flow, Stage* stage):
    """Tell whether an operator works or waits for answers, and how many rounds are there."""
    cdef Program program = <Program>flow.of_stages[stage.position]
    if isinstance(program, Answers) and (<Answers>program).rounds:
        return True, len((<Answers>program).rounds)
    return stage.lanes() > 0, stage.waiting()


cdef object wait_of(GraphFlow flow, Stage* stage, list busy, dict inputs):
    cdef str name = name_of_stage(flow, stage)
    cdef uint64_t lanes = stage.lanes()
    cdef int64_t rests = stage.not_before() - monotonic_ns() if stage.not_before() != 0 else 0
    cdef bint has_input = stage.waiting() > 0
    cdef Program program = <Program>flow.of_stages[stage.position]
    rows = f"about {max(stage.queued(), 1.0):.0f} rows"
    workers = "1 worker" if lanes == 1 else f"{lanes} workers"
    if lanes > 0 and has_input and not stage.has_room_for_lane():
        words = f"has {workers} at work, the most that may be, and {rows} wait"
        return WaitRecord("operator", name, WaitReason.LANES, words)
    if lanes > 0:
        return WaitRecord("operator", name, WaitReason.RUNNING, f"has {workers} at work")
    if isinstance(program, Answers) and program.in_flight:
        return WaitRecord("operator", name, WaitReason.ANSWER, f"waits for {program.waits_for}")
    if not has_input:
        for program in flow.programs.values():
            if program.stage == stage and (words := input_words(program, inputs)):
                return WaitRecord("operator", program.name, WaitReason.INPUT, words)
        return WaitRecord("operator", name, WaitReason.NO_INPUT, "has no input")
    if rests > 0:
        return WaitRecord("operator", name, WaitReason.TIMER, f"rests for {rests / 1e9:.3f} s, and {rows} wait")
    if busy:
        others = ", ".join([repr(one) for one in busy])
        words = f"has {rows} that wait, while the workers are at {others}"
        return WaitRecord("operator", name, WaitReason.HEURISTIC, words)
    return WaitRecord("operator", name, WaitReason.QUEUED, f"has {rows} that wait for a worker")


cdef str input_words(Program program, dict inputs):
    """Name the inputs for which a program holds rows; None: it holds none."""
    rows, silent = program.waiting_rows()
    if not rows or not silent:
        return None
    names = [repr(inputs[program.name][which]) for which in silent]
    sends = "sends" if len(names) == 1 else "send"
    held = "1 row" if rows == 1 else f"{rows:,} rows"
    return f"holds {held} until {' and '.join(names)} {sends} a row or a watermark"
