# A join whose comparisons are divided among lanes.
from libc.stdint cimport int64_t

from callboard.streams.programs.merging.merge cimport IdleSources, Merge
from callboard.streams.programs.program cimport Program

cdef enum JoinCommandKind:
    BEGIN      # a round begins, at whose end the lineage is this
    CHUNK      # `subject`: rows to be compared; `found` is what was found of them
    COME_TO    # `subject`: a time; of batches, rows that are not compared
    REACH      # `subject`: a watermark
    LATE       # `subject`: what is late
    FAILED     # `subject`: a row; `serial` and `error` are its
    ENDED      # `error` ends the run
    FINISH     # the end of the streams


# A step of a join's work, which the first of its programs writes down.
cdef class JoinCommand:
    cdef JoinCommandKind kind
    cdef object subject
    cdef object found
    cdef int64_t serial
    cdef object error
    cdef object lineage


cdef JoinCommand command(JoinCommandKind kind, object subject, object lineage)
cdef JoinCommand failed_command(int64_t serial, object row, object error, object lineage)
cdef JoinCommand ended_command(object error)
# A new CHUNK with the matches: each command is written only once.
cdef JoinCommand with_found(JoinCommand chunk, object found)

# For the first of the programs, and for the last one.
cdef int write_down(IdleSources program, list batches, list into) except -1
cdef int note(JoinCommand step, list into) except -1
cdef int begin_outputs(Merge program, list into) except -1
cdef int carry_out_common(Merge program, JoinCommand step, list into) except -1


cdef class LanePrograms(Program):
    cdef list indexes       # one for each lane; and one for where it does not work divided

    cdef object found(self, size_t lane, object chunk)
