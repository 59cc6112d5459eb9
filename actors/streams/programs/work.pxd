# What stages do with rounds.
from libc.stdint cimport int64_t, uint32_t
from libcpp.vector cimport vector

from callboard.scheduling.flow.values cimport Values
from callboard.scheduling.flow.flow cimport AtomicCount, NativeStage, Operator, Stage, Tally
from callboard.streams.programs.program cimport Batch, Program
from callboard.streams.native cimport NativeProgram


cdef class Ending:
    # How a run ends: shared by its stages.
    cdef AtomicCount stopped_at   # rounds after this one are dropped
    cdef object failed            # ((serial, -position), error) of the first failure, or None
    cdef dict positions           # of the operators, by name

    cdef int fail(self, int64_t serial, object error) except -1
    cdef object later(self, object first, object second)
    cdef object position_of(self, object error)


cdef class Work:
    cdef Ending ending
    cdef Program program
    cdef list ports_of       # for each edge, the port it comes from, in order
    cdef list passed         # for each port, how many rows left by it
    cdef uint32_t edges
    cdef int inputs
    cdef vector[bint] from_native   # for each input, whether it brings lots of native values
    cdef vector[bint] to_native     # for each edge, whether it takes such
    cdef Stage* stage        # of a throttled program, which rests after its rows
    cdef double ns_per_row

    cdef int throttle(self, Stage* stage) except -1
    cdef void* process(self, int64_t serial, void** inputs, Tally& tally) noexcept
    cdef bint is_dropped(self, int64_t serial) noexcept
    cdef Batch take(self, int which, void** inputs)
    cdef list fresh(self, Batch batch)
    cdef object named(self, object raised)
    cdef void* finish(self, int64_t serial, list into, bint final, object error, Tally& tally) noexcept
    cdef void* pick(self, list into, uint32_t edge) noexcept

    cdef Operator as_operator(self) noexcept


cdef class Splitter(Work):
    pass


cdef class Parts(Work):
    cdef uint32_t begin(self, Split split, uint32_t* partitions) noexcept
    cdef bint part(self, uint32_t partition, int64_t serial, Split split, Tally& tally) noexcept
    cdef void* gathered(self, int64_t serial, Split split) noexcept


cdef class Split:
    # A round on its way through a partitioned stage.
    cdef Batch batch
    cdef dict parts               # partition -> Part
    cdef object error
    cdef AtomicCount pending


cdef class NativeWork(Work):
    cdef NativeStage native

    cdef int prepare(self, NativeProgram program) except -1


cdef void* native_batch(Batch batch, str name) noexcept
