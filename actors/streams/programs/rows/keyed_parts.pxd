# The parts of rounds that worker processes get for keyed operators.
from libc.stdint cimport uint32_t

from callboard.scheduling.flow.stage cimport SubBatch
from callboard.streams.programs.program cimport DividedBatch

cdef extern from "callboard/scheduling/flow/keyed_division.hpp":
    # Stands for the partition of a row that goes to all partitions, or to none: a watermark.
    const uint32_t ALL_OR_NONE "callboard::Division::everybody"

# Stands for the key of a row that is not sent.
cdef object NOT_SENT

# For each of `count` processes that get something, the numbers of its sub-batches.
cdef list owned_of(DividedBatch divided, Py_ssize_t count)
# Some sub-batches as they are sent. Rows whose keys raised are `refused`, and not in them.
cdef list groups_of(DividedBatch divided, list numbers, dict refused)
# The same, with whole numbers as bytes.
cdef list packed_groups(list groups)
# The places of a sub-batch's rows in their round, as unsigned integers of 32 bits.
cdef bytes places_of(SubBatch* sub_batch)
