"""Decodes msgpack from untrusted senders, in slices, so that other actors get their turns.

Extensions that hold an array are opened where they lie. Nothing here calls itself, whatever the depth.
"""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.dict cimport PyDict_SetItem
from cpython.list cimport PyList_Append, PyList_AsTuple
from cpython.object cimport PyObject_Hash
from cpython.set cimport PySet_Add
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from msgpack.exceptions import FormatError, OutOfData, StackError

from callboard.remote.errors import CodecError

cdef extern from "callboard/remote/wire/collisions.hpp" namespace "callboard":
    cdef cppclass Collisions:
        Collisions(bint of_set) except +
        int64_t add(int64_t hash) except +

# Values that hold others, and how deep they may lie in one another.
DEEPEST = 64
cdef int DEEPEST_EXTENSION = DEEPEST
cdef int DEEPEST_VALUE = 1024
# So many keys are no work, however they collide.
cdef Py_ssize_t FEW_KEYS = 32
# The share of a slice that a container counts as; that of a call of Python, and of some text.
cdef Py_ssize_t CONTAINER = 4
cdef Py_ssize_t CALL = 16
cdef int TEXT_SHIFT = 12
cdef int COMPARISONS_SHIFT = 3
# Longer keys of maps are not looked for among those before.
cdef uint64_t SHORT_KEY = 64

cdef enum:
    TUPLE = 1
    SET = 2
    FROZENSET = 3
    DATACLASS = 11
    ENUM = 12
    # These two are no extensions.
    LIST = 128
    MAP = 129


@cython.final
cdef class _Container:
    """A container that is being decoded."""
    cdef int kind
    cdef uint64_t left  # values, of a map keys as well
    cdef const uint8_t* end  # of an extension; else NULL
    cdef _Container outer
    cdef list items
    cdef dict pairs
    cdef set members
    cdef object key
    cdef bint has_key
    cdef Collisions* collisions

    def __dealloc__(self):
        del self.collisions


@cython.final
cdef class Unpacking:
    """The decoding of one value, in slices. Used by one thread."""
    cdef const uint8_t[::1] _data
    cdef const uint8_t* _at
    cdef const uint8_t* _end
    cdef object _plain
    cdef object _compose
    cdef Py_ssize_t _most
    cdef Py_ssize_t _counted
    cdef bint _is_trusted
    cdef uint64_t _expected
    cdef int _depth
    cdef int _extensions
    cdef _Container _top
    cdef dict _keys
    cdef bint _is_done
    cdef readonly object value

    def __init__(self, const uint8_t[::1] data not None, plain, compose, Py_ssize_t most, bint is_trusted):
        """Begin. `plain(code, data)` makes what other extensions hold, `compose(code, items)` what is neither
        tuple nor set. More than `most` values are refused, and keys that collide, unless `is_trusted`.
        """
        self._data = data
        if data.shape[0]:
            self._at = &data[0]
        self._end = self._at + data.shape[0]
        self._plain, self._compose = plain, compose
        self._most = most
        self._is_trusted = is_trusted
        self._expected = self._counted = 1
        self._keys = {}

    def advance(self, Py_ssize_t work):
        """Go on, for about so many values, and return whether the value is complete.

        Raises CodecError, and whatever comes of bytes that are no value.
        """
        while work > 0 and not self._is_done:
            work -= self._step()
        return self._is_done

    cdef Py_ssize_t _step(self) except -1:
        """Read a header, and what belongs to it alone. Return how much work it was."""
        cdef uint8_t head
        self._need(1)
        head = self._at[0]
        self._at += 1
        self._expected -= 1
        if head < 0x80:
            return self._put(head)
        if head >= 0xE0:
            return self._put(<int8_t>head)
        if head <= 0x8F:
            return self._open(MAP, head & 0x0F, NULL)
        if head <= 0x9F:
            return self._open(LIST, head & 0x0F, NULL)
        if head <= 0xBF:
            return self._text(head & 0x1F)
        if head == 0xC0:
            return self._put(None)
        if head == 0xC2:
            return self._put(False)
        if head == 0xC3:
            return self._put(True)
        if 0xC4 <= head <= 0xC6:
            return self._binary(self._number(1 << (head - 0xC4)))
        if 0xC7 <= head <= 0xC9:
            return self._extension(self._number(1 << (head - 0xC7)))
        if head == 0xCA or head == 0xCB:
            return self._float(head == 0xCB)
        if 0xCC <= head <= 0xCF:
            return self._put(self._number(1 << (head - 0xCC)))
        if 0xD0 <= head <= 0xD3:
            return self._signed(head)
        if 0xD4 <= head <= 0xD8:
            return self._extension(1 << (head - 0xD4))
        if 0xD9 <= head <= 0xDB:
            return self._text(self._number(1 << (head - 0xD9)))
        if head == 0xDC or head == 0xDD:
            return self._open(LIST, self._number(2 if head == 0xDC else 4), NULL)
        if head == 0xDE or head == 0xDF:
            return self._open(MAP, self._number(2 if head == 0xDE else 4), NULL)
        raise FormatError(f"no value begins with the byte {head:#x}")

    cdef inline int _need(self, uint64_t size) except -1:
        if <uint64_t>(self._end - self._at) < size:
            raise OutOfData(f"expected {size} more bytes, got {self._end - self._at}")
        return 0

    cdef inline uint64_t _number(self, int width) except? 0xFFFF:
        cdef uint64_t number = 0
        cdef int _i
        self._need(width)
        for _i in range(width):
            number = number << 8 | self._at[0]
            self._at += 1
        return number

    cdef Py_ssize_t _signed(self, uint8_t head) except -1:
        cdef uint64_t number = self._number(1 << (head - 0xD0))
        if head == 0xD0:
            return self._put(<int8_t>number)
        if head == 0xD1:
            return self._put(<int16_t>number)
        if head == 0xD2:
            return self._put(<int32_t>number)
        return self._put(<int64_t>number)

    cdef Py_ssize_t _float(self, bint is_double) except -1:
        cdef uint64_t bits = self._number(8 if is_double else 4)
        cdef uint32_t half = <uint32_t>bits
        cdef double double_value
        cdef float single_value
        if is_double:
            memcpy(&double_value, &bits, sizeof(bits))
        else:
            memcpy(&single_value, &half, sizeof(half))
            double_value = single_value
        return self._put(double_value)

    cdef Py_ssize_t _text(self, uint64_t size) except -1:
        cdef object text
        self._need(size)
        text = PyUnicode_DecodeUTF8(<const char*>self._at, size, NULL)
        self._at += size
        if size <= SHORT_KEY and self._top is not None and self._top.kind == MAP and not self._top.has_key:
            text = self._keys.setdefault(text, text)  # that of many rows is kept once
        return self._put(text) + (size >> TEXT_SHIFT)

    cdef bytes _bytes(self, uint64_t size):
        self._need(size)
        data = PyBytes_FromStringAndSize(<const char*>self._at, size)
        self._at += size
        return data

    cdef Py_ssize_t _binary(self, uint64_t size) except -1:
        return self._put(self._bytes(size)) + (size >> TEXT_SHIFT)

    cdef Py_ssize_t _extension(self, uint64_t size) except -1:
        cdef int code = <int8_t>self._number(1)
        cdef uint8_t head
        cdef const uint8_t* end
        cdef uint64_t count
        self._need(size)
        if not (TUPLE <= code <= FROZENSET or code == DATACLASS or code == ENUM):
            return self._put(self._plain(code, self._bytes(size))) + CALL
        if self._extensions == DEEPEST_EXTENSION:
            raise CodecError(f"a value is nested in more than {DEEPEST} extensions")
        end = self._at + size
        head = self._at[0] if size else 0
        if not (0x90 <= head <= 0x9F or head == 0xDC or head == 0xDD):
            raise CodecError(f"an extension {code} holds no array")
        self._at += 1
        count = head & 0x0F
        if head == 0xDC or head == 0xDD:
            count = self._number(2 if head == 0xDC else 4)
        return self._open(code, count, end)

    cdef Py_ssize_t _open(self, int kind, uint64_t count, const uint8_t* end) except -1:
        """Begin with a container of so many items, for which there must be a byte each."""
        cdef _Container made = _Container.__new__(_Container)
        made.kind, made.end = kind, end
        made.left = 2 * count if kind == MAP else count
        self._expected += made.left
        if self._expected > <uint64_t>(self._end - self._at):
            raise OutOfData(f"{self._expected} values are to come, in {self._end - self._at} bytes")
        self._counted += CONTAINER - 1 + <Py_ssize_t>made.left  # one of which was announced
        if self._counted > self._most and not self._is_trusted:
            raise CodecError(
                f"more than {self._most} values, with a container as {CONTAINER}: send less at a time"
            )
        if kind == MAP:
            made.pairs = {}
        elif kind == SET or kind == FROZENSET:
            made.members = set()
        else:
            made.items = []
        if made.left == 0:
            return CONTAINER + self._put(self._close(made))
        if self._depth == DEEPEST_VALUE:
            raise StackError(f"values are nested in more than {DEEPEST_VALUE}")
        self._depth += 1
        if end != NULL:
            self._extensions += 1
        made.outer, self._top = self._top, made
        return CONTAINER

    cdef Py_ssize_t _put(self, object value) except -1:
        """Put a value into the container that it lies in, and close those that are full."""
        cdef _Container top = self._top
        cdef Py_ssize_t work = 1
        while top is not None:
            if top.kind == MAP:
                work += self._put_into_map(top, value)
            elif top.members is not None:
                work += self._refuse_collisions(top, value, len(top.members))
                PySet_Add(top.members, value)
            else:
                PyList_Append(top.items, value)
            top.left -= 1
            if top.left:
                return work
            self._depth -= 1
            if top.end != NULL:
                self._extensions -= 1
                work += CALL
            value = self._close(top)
            self._top = top = top.outer
        if self._at != self._end:
            raise CodecError(f"{self._end - self._at} bytes follow a value")
        self.value, self._is_done = value, True
        return work

    cdef Py_ssize_t _put_into_map(self, _Container top, object value) except -1:
        if top.has_key:
            PyDict_SetItem(top.pairs, top.key, value)
            top.key, top.has_key = None, False
            return 0
        top.key, top.has_key = value, True
        return self._refuse_collisions(top, value, len(top.pairs))

    cdef inline Py_ssize_t _refuse_collisions(self, _Container top, object key, Py_ssize_t before) except -1:
        """Refuse a key that is one of many which collide: each would be compared with all others."""
        cdef int64_t comparisons
        if before < FEW_KEYS or self._is_trusted:
            return 0
        if top.collisions == NULL:
            top.collisions = new Collisions(top.kind != MAP)
            for known in (top.pairs if top.kind == MAP else top.members):
                top.collisions.add(PyObject_Hash(known))
        comparisons = top.collisions.add(PyObject_Hash(key))
        if comparisons < 0:
            raise CodecError(f"the hashes of {before + 1} keys of a dict or set collide")
        return comparisons >> COMPARISONS_SHIFT

    cdef object _close(self, _Container made):
        if made.end != NULL and made.end != self._at:
            raise CodecError(f"an extension {made.kind} is {made.end - self._at} bytes longer than its array")
        if made.kind == LIST:
            return made.items
        if made.kind == MAP:
            return made.pairs
        if made.kind == SET:
            return made.members
        if made.kind == FROZENSET:
            return frozenset(made.members)
        if made.kind == TUPLE:
            return PyList_AsTuple(made.items)
        return self._compose(made.kind, made.items)
