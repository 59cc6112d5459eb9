"""Keys that are counted together, with or without weights."""

from cpython.object cimport PyObject_Hash
from libc.stdint cimport int64_t, uint64_t
from libcpp.vector cimport vector

from callboard.frequency.counting.keys cimport ByteRun
from callboard.frequency.encoding cimport read_integers, read_runs

from numbers import Number

from callboard.core.checks import LARGEST, whole
from callboard.core.text import safe_repr


cdef int check_key(object key) except -1:
    PyObject_Hash(key)
    if isinstance(key, Number) and key != key:
        raise ValueError(f"a key is equal to itself, not as {safe_repr(key)}")
    return 0


cdef class Lot:
    """Keys, which nobody else changes, read in the narrowest way that takes them all from `mode` on.

    Raises TypeError for a key that cannot be hashed, ValueError for NaN, and for a weight below 0.
    """

    def __cinit__(self, list keys, weights, int mode):
        if weights is None:
            self.total = len(keys)
        else:
            weights = [whole("a weight", weight, 0) for weight in weights]
            self.total = min(sum(weights), LARGEST + 1)  # that is too many, too
            for key, weight in zip(keys, weights):
                if weight == 0:
                    check_key(key)
                else:
                    self.weights.push_back(min(weight, LARGEST))
            if self.weights.size() < <size_t>len(keys):
                keys = [key for key, weight in zip(keys, weights) if weight != 0]
        self.keys = keys
        self.read(mode)

    cdef const uint64_t* weights_or_null(self):
        return <const uint64_t*>NULL if self.weights.empty() else self.weights.data()

    cdef int read(self, int mode) except -1:
        cdef vector[int64_t] integers
        cdef vector[ByteRun] runs
        if mode <= as_integers and read_integers(self.keys, integers):
            self.integers.swap(integers)
            self.mode = as_integers
        elif mode <= as_bytes and read_runs(self.keys, runs, self.room):
            self.runs.swap(runs)
            self.mode = as_bytes
        else:
            for key in self.keys:
                check_key(key)
            self.mode = as_objects
        return 0
