"""Batches of keys, with or without weights, and the encoding of keys as runs of bytes.

Integers, texts, bytes and tuples of these have an encoding. Two such keys are equal exactly if their runs and kinds
are. That does not hold for all of Python's keys: 1 is equal to 1.0 and True, so floats and booleans, tuples with them,
and instances of subclasses are not encoded.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.object cimport PyObject, PyObject_Hash
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcpy
from libcpp.string cimport string
from libcpp.vector cimport vector

from callboard._inside.sending.values cimport buffer_of
from callboard.core.asserting cimport holds
from callboard.frequency.counting.keys cimport ByteRun, bytes_key, integer_key, text_key, tuple_key
from callboard.rows.instants cimport as_key

from numbers import Number

from callboard.core.checks import LARGEST, is_missing, whole
from callboard.core.text import safe_repr

cdef extern from "Python.h":
    int Py_EnterRecursiveCall(const char* where) except -1
    void Py_LeaveRecursiveCall()
    bint PyUnicode_IS_COMPACT_ASCII(object text)
    PyObject* PyList_GET_ITEM(object list, Py_ssize_t index)
    const void* PyUnicode_DATA(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    long long PyLong_AsLongLongAndOverflow(object number, int* overflow) except? -1
    # Borrowed from the string, for as long as it lives.
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL
    ctypedef struct PyASCIIObject:  # a text's head, with its bytes behind
        pass

    # For borrowed references, which are not counted.
    bint is_text "PyUnicode_CheckExact"(PyObject* key)
    bint is_ascii "PyUnicode_IS_COMPACT_ASCII"(PyObject* key)
    Py_ssize_t text_length "PyUnicode_GET_LENGTH"(PyObject* key)
    bint is_whole "PyLong_CheckExact"(PyObject* key)

cdef Py_ssize_t MAX_RUN = 0xffffffff
cdef int DEEPEST = 16  # tuples in tuples


cdef inline bint read_ascii(PyObject* key, ByteRun* run) noexcept:
    """Set `run` to the bytes of a text that is ASCII, as most are. False: it is not."""
    if not is_text(key) or not is_ascii(key) or text_length(key) > MAX_RUN:
        return False
    run.data = <const char*>(<PyASCIIObject*>key + 1)
    run.size = <uint32_t>text_length(key)
    run.kind = text_key
    return True


cdef bint append_key(object key, string& into, ByteRun* run, int depth=0) except -1:
    """Set `run` to the key's run of bytes: its own, or, where `run.data` is null, the bytes that were added to
    `into`.

    False: it has none. Then the added bytes are meaningless."""
    cdef Py_ssize_t size = 0
    cdef int64_t number
    cdef size_t begin
    cdef ByteRun element
    cdef type sort = type(key)
    if sort is str:
        if PyUnicode_IS_COMPACT_ASCII(key):
            run.data = <const char*>PyUnicode_DATA(key)
            size = PyUnicode_GET_LENGTH(key)
        else:
            run.data = encoded(key, &size)
            if run.data == NULL:
                return False
        run.kind = text_key
    elif sort is bytes:
        run.data = PyBytes_AS_STRING(key)
        size = PyBytes_GET_SIZE(key)
        run.kind = bytes_key
    elif sort is int:
        if not read_integer(key, &number):
            return False
        into.append(<const char*>&number, sizeof(number))
        run.data = NULL
        size = sizeof(number)
        run.kind = integer_key
    elif sort is tuple and depth < DEEPEST:
        begin = into.size()
        for part in <tuple>key:
            # Room for the element's head, which is known later.
            at = into.size()
            into.append(8, 0)
            if not append_key(part, into, &element, depth + 1):
                return False
            if element.data != NULL:
                into.append(element.data, element.size)
            memcpy(&into[at], &element.kind, 4)
            memcpy(&into[at + 4], &element.size, 4)
        run.data = NULL
        size = into.size() - begin
        run.kind = tuple_key
    else:
        return False
    if size > MAX_RUN:
        return False
    run.size = <uint32_t>size
    return True


cdef const char* encoded(str text, Py_ssize_t* size) except? NULL:
    """The text as UTF-8, or null for one with lone surrogates."""
    try:
        return PyUnicode_AsUTF8AndSize(text, size)
    except UnicodeEncodeError:
        return NULL


cdef bint read_integer(object key, int64_t* into) except -1:
    """The key as an integer of 64 bits. False: it is not one."""
    cdef int overflow = 0
    if type(key) is not int:
        return False
    into[0] = PyLong_AsLongLongAndOverflow(key, &overflow)
    return overflow == 0


cdef bint read_integers(list keys, vector[int64_t]& into) except -1:
    """The keys as integers of 64 bits. False: one is not."""
    cdef int64_t number
    into.reserve(len(keys))
    for key in keys:
        if not read_integer(key, &number):
            return False
        into.push_back(number)
    return True


@cython.boundscheck(False)
cdef bint read_runs(list keys, vector[ByteRun]& into, string& room) except -1:
    """The keys as runs of bytes, in their memory or in `room`. False: one has none."""
    cdef ByteRun run
    cdef size_t begin = 0
    cdef size_t i
    into.reserve(len(keys))
    for i in range(<size_t>len(keys)):
        if not read_ascii(PyList_GET_ITEM(keys, i), &run) and not append_key(keys[i], room, &run):
            return False
        into.push_back(run)
    for i in range(into.size()):  # it has its final size, so their places in it are known
        if into[i].data == NULL:
            into[i].data = room.data() + begin
            begin += into[i].size
    return True


cdef bint are_plain(list keys) except -1:
    """Whether all are texts and integers. Runs none of their code. Other threads may change the list."""
    cdef PyObject* key
    cdef Py_ssize_t i
    cdef bint plain = True
    with cython.critical_section(keys):
        for i in range(len(keys)):
            key = PyList_GET_ITEM(keys, i)
            if not is_text(key) and not is_whole(key):
                plain = False
                break
    return plain


cdef object key_of(uint32_t kind, const char* data, Py_ssize_t size):
    """The key that a run of bytes encodes."""
    cdef int64_t number
    cdef uint32_t head[2]
    cdef list parts
    if kind == integer_key:
        memcpy(&number, data, sizeof(number))
        return number
    if kind == text_key:
        return PyUnicode_DecodeUTF8(data, size, "surrogateescape")  # a column of Arrow may hold anything
    if kind == bytes_key:
        return PyBytes_FromStringAndSize(data, size)
    parts = []
    while size > 0:
        memcpy(head, data, 8)
        parts.append(key_of(head[0], data + 8, head[1]))
        data += 8 + head[1]
        size -= 8 + <Py_ssize_t>head[1]
    return tuple(parts)


# --- batches ---------------------------------------------------------------------------------------------------------


cdef int check_key(object key) except -1:
    PyObject_Hash(key)
    return check_equal(key)


cdef int check_equal(object key) except -1:
    """Raise ValueError for NaN, and for a tuple that contains it, which equal themselves only as the same object."""
    if isinstance(key, tuple):
        Py_EnterRecursiveCall(" while looking for NaN")
        try:
            for part in <tuple>key:
                check_equal(part)
        finally:
            Py_LeaveRecursiveCall()
    elif (isinstance(key, Number) or type(key).__module__.startswith(("numpy", "pandas"))) and is_missing(key):
        raise ValueError(f"expected a key that is equal to itself, got {safe_repr(key)}")
    return 0


cdef KeyBatch batch_of_list(list keys, weights, int mode):
    """Keys of a list that other threads do not change, read in the narrowest mode that takes them all, from `mode` on.

    Raises TypeError for a key that cannot be hashed, ValueError for NaN, and for a weight below 0.
    """
    cdef KeyBatch batch = KeyBatch()
    if weights is None:
        batch.total = len(keys)
    else:
        weights = [whole("a weight", weight, 0) for weight in weights]
        batch.total = min(sum(weights), LARGEST + 1)  # too many, as well
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
        """Read the keys in this mode, or in the next one that takes them all."""
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
