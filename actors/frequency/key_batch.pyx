"""Keys that are counted together, with or without weights."""

from cpython.object cimport PyObject_Hash
from libc.stdint cimport int64_t
from libcpp.vector cimport vector

from callboard._inside.sending.values cimport buffer_of
from callboard.core.asserting cimport holds
from callboard.rows.instants cimport as_key
from callboard.frequency.counting.keys cimport ByteRun
from callboard.frequency.encoding cimport read_integers, read_runs

from numbers import Number

from callboard.core.checks import LARGEST, is_missing, whole
from callboard.core.text import safe_repr

cdef extern from "Python.h":
    int Py_EnterRecursiveCall(const char* where) except -1
    void Py_LeaveRecursiveCall()


cdef int check_key(object key) except -1:
    PyObject_Hash(key)
    return check_equal(key)


cdef int check_equal(object key) except -1:
    """ValueError: it is NaN, or a tuple with NaN in it, which is equal to itself only while it is the same object."""
    if isinstance(key, tuple):
        Py_EnterRecursiveCall(" while looking for NaN")
        try:
            for part in <tuple>key:
                check_equal(part)
        finally:
            Py_LeaveRecursiveCall()
    elif (isinstance(key, Number) or type(key).__module__.startswith(("numpy", "pandas"))) and is_missing(key):
        raise ValueError(f"a key is equal to itself, not as {safe_repr(key)}")
    return 0


cdef KeyBatch batch_of_list(list keys, weights, int mode):
    """Keys that nobody else changes, read in the narrowest way that takes them all, from `mode` on.

    Raises TypeError for a key that cannot be hashed, ValueError for NaN, and for a weight below 0.
    """
    cdef KeyBatch batch = KeyBatch()
    if weights is None:
        batch.total = len(keys)
    else:
        weights = [whole("a weight", weight, 0) for weight in weights]
        batch.total = min(sum(weights), LARGEST + 1)  # that is too many, too
        for key, weight in zip(keys, weights):
            if weight == 0:
                check_key(key)
            else:
                batch.column.weights.push_back(min(weight, LARGEST))
        if batch.column.weights.size() < <size_t>len(keys):
            keys = [key for key, weight in zip(keys, weights) if weight != 0]
    batch.keys = keys
    assert holds(batch.column.weights.empty() or batch.column.weights.size() == <size_t>len(keys))
    batch.read(mode)
    return batch


cdef KeyBatch batch_of_array(object array, int mode):
    """The keys of an Arrow array without nulls, which is not copied."""
    cdef KeyBatch batch = KeyBatch()
    batch.total = len(array)
    batch.array = array
    batch.buffer = buffer_of(array)
    batch.read(mode)
    return batch


cdef class KeyBatch:
    def __dealloc__(self):
        if self.buffer != NULL:
            self.buffer.drop()

    cdef int read(self, int mode) except -1:
        """Read the keys in this way, or in the next one that takes them all."""
        cdef vector[int64_t] integers
        cdef vector[ByteRun] runs
        if self.buffer != NULL and mode <= as_bytes:
            if self.column.take_arrow(self.buffer.schema, self.buffer.array):
                if mode == as_bytes and not self.column.make_runs():
                    raise MemoryError
                self.mode = as_bytes if self.column.has_runs else as_integers
                return 0
            self.column.has_runs = False
        if self.keys is None:
            self.keys = self.array.to_pylist()
        if mode <= as_integers and read_integers(self.keys, integers):
            self.column.integers.swap(integers)
            self.mode = as_integers
        elif mode <= as_bytes and read_runs(self.keys, runs, self.room):
            self.column.runs.swap(runs)
            self.column.has_runs = True
            self.mode = as_bytes
        else:
            for key in self.keys:
                check_key(key)
            self.keys = [as_key(key) for key in self.keys]
            self.mode = as_objects
        return 0
