# Programs with a state, or one for each key.
from libc.stdint cimport int64_t, uint64_t
from libcpp cimport bool as cbool

from callboard.streams.programs.program cimport Batch, DividedBatch, Program, Watermark
from callboard.streams.programs.rows.tables cimport Table


cdef class Stateful(Program):
    cdef object key          # row -> key; None without keys: then the one state has the key None
    cdef object partition    # key -> a number of its partition; bounds, in a list; None: by its hash
    cdef dict numbers        # of keys, in place of hashes; None: hashes
    cdef bint hashes_values  # they are the same in each process: see value_hash.hpp
    cdef uint64_t hash_seed  # of these
    cdef cbool is_foreign    # since this was cleared, a key came whose hash is not
    cdef bint fewer          # partitions may be, than there are: if the user does not say
    cdef bint leaves_keys    # outputs of rows have no keys in front: who has the rows adds them
    cdef bint marks_time     # whether states have something to say at a watermark
    cdef bint marks_end      # and at the end
    cdef list tables         # one for each partition, when it works divided
    cdef Table table         # the only one, when it does not
    cdef object hot          # SpaceSaving of keys; None: they are not counted
    cdef int most_hot        # how many of these are shown
    cdef list came           # keys that are to be counted, when it does not work divided

    # For programs: append to `outs` what a row gives, or nothing if it raises.
    cdef int step(self, Table table, object key, object row, int64_t serial, list outs) except -1
    # The outputs of a state at a watermark, or (None) at the end. May drop the key from the table.
    cdef list mark(self, Table table, object key, object state, object time)
    cdef object time_at(self, Watermark watermark)

    # For a snapshot: values for the states in a table, in their order; and the state that a value stands for.
    cdef list saved(self, Table table)
    cdef object columns_of(self, Table table)
    cdef object loaded(self, Table table, object value)

    cdef bint puts_keys(self)
    cdef Table home_of(self, object key, bint divided)

    cdef uint64_t hash_of(self, object key) except? 0
    cdef Py_ssize_t partition_of(self, object key) except -1
    cdef int note_keys(self, list keys) except -1
    cdef int punctuate(self, Batch batch, Py_ssize_t at, list into) except -1
    cdef list asked(self, Table table, Batch batch, Py_ssize_t at)
    cdef list due(self, Table table, object time)
    cdef int settle(self, Batch batch, Py_ssize_t at, list outputs, object error, list into) except -1
    cdef int settle_each(self, Batch batch, Py_ssize_t at, list outputs, object error, list into) except -1
    cdef bint merge(self, DividedBatch divided, Py_ssize_t at, list into) except -1


cdef born_of(answer)
cdef arrival_of(row)
