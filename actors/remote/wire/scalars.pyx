"""Single plain values in the encoding of `codec`, without its work for values that contain others.

Messages are often one number or a short text. The codec takes longer for such a one than an actor takes to handle it.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport int8_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

cdef extern from "Python.h":
    int64_t PyLong_AsLongLongAndOverflow(object value, int* overflow) except? -1
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL
    str PyUnicode_DecodeUTF8(const char* bytes, Py_ssize_t size, const char* errors)

NOT_SCALAR = object()

# The first bytes in msgpack.
cdef enum:
    NIL = 0xc0
    NO = 0xc2
    YES = 0xc3
    BYTES_8 = 0xc4
    DOUBLE = 0xcb
    UNSIGNED_8 = 0xcc
    SIGNED_8 = 0xd0
    TEXT_8 = 0xd9
    TEXT_5 = 0xa0      # and the length
    MOST_POSITIVE = 0x7f
    LEAST_NEGATIVE = 0xe0

cdef Py_ssize_t LONGEST = 255  # bytes of a text or of bytes


cdef bytes packed_scalar(object value):
    """Return the bytes of None, a bool, a float, an integer of 64 bits, or a short text or bytes; None for others."""
    cdef type kind = type(value)
    cdef int overflow = 0
    cdef int64_t number
    cdef Py_ssize_t size = 0
    cdef const char* text
    if kind is int:
        number = PyLong_AsLongLongAndOverflow(value, &overflow)
        return None if overflow else packed_number(number)
    if kind is str:
        try:
            text = PyUnicode_AsUTF8AndSize(value, &size)
        except UnicodeEncodeError:
            return None
        if size < 32:
            return joined(TEXT_5 | size, text, size)
        return joined(TEXT_8, text, size) if size <= LONGEST else None
    if kind is float:
        return packed_double(value)
    if kind is bytes:
        size = PyBytes_GET_SIZE(value)
        return joined(BYTES_8, PyBytes_AS_STRING(value), size) if size <= LONGEST else None
    if value is None:
        return b"\xc0"
    if kind is bool:
        return b"\xc3" if value else b"\xc2"
    return None


cdef object scalar_of(const unsigned char* at, Py_ssize_t size):
    """Return the value of these bytes, or NOT_SCALAR if they are something else, or invalid."""
    cdef uint8_t first
    cdef uint64_t bits
    cdef int64_t number
    cdef double real
    if size < 1:
        return NOT_SCALAR
    first = at[0]
    if first <= MOST_POSITIVE or first >= LEAST_NEGATIVE:
        return <int8_t>first if size == 1 else NOT_SCALAR
    if TEXT_5 <= first < TEXT_5 + 32:
        return text_of(at + 1, size - 1, first - TEXT_5)
    if first == TEXT_8 and size > 1:
        return text_of(at + 2, size - 2, at[1])
    if first == BYTES_8 and size > 1:
        return PyBytes_FromStringAndSize(<const char*>at + 2, size - 2) if size - 2 == at[1] else NOT_SCALAR
    if first == NIL or first == NO or first == YES:
        return NOT_SCALAR if size != 1 else None if first == NIL else first == YES
    if UNSIGNED_8 <= first < UNSIGNED_8 + 4 and size == 1 + (1 << (first - UNSIGNED_8)):
        return big_endian(at + 1, size - 1)
    if SIGNED_8 <= first < SIGNED_8 + 4 and size == 1 + (1 << (first - SIGNED_8)):
        bits = big_endian(at + 1, size - 1) << (8 * (9 - size))
        number = <int64_t>bits
        return number >> (8 * (9 - size))
    if first == DOUBLE and size == 9:
        bits = big_endian(at + 1, 8)
        memcpy(&real, &bits, sizeof(real))
        return real
    return NOT_SCALAR


cdef object text_of(const unsigned char* at, Py_ssize_t size, Py_ssize_t announced):
    if size != announced:
        return NOT_SCALAR
    try:
        return PyUnicode_DecodeUTF8(<const char*>at, size, NULL)
    except UnicodeDecodeError:
        return NOT_SCALAR


cdef bytes packed_number(int64_t number):
    cdef int power = 0
    if -32 <= number <= MOST_POSITIVE:
        return joined(number & 0xff, NULL, 0)
    if number >= 0:
        while power < 3 and <uint64_t>number >> (8 << power):
            power += 1
        return with_number(UNSIGNED_8 + power, number, 1 << power)
    while power < 3 and number < -(<int64_t>1 << ((8 << power) - 1)):
        power += 1
    return with_number(SIGNED_8 + power, number, 1 << power)


cdef bytes packed_double(double value):
    cdef uint64_t bits
    memcpy(&bits, &value, sizeof(bits))
    return with_number(DOUBLE, bits, 8)


cdef bytes with_number(int first, uint64_t bits, Py_ssize_t size):
    """Return a first byte, and the lowest bytes of a number in the order of networks."""
    cdef unsigned char bytes[8]
    cdef Py_ssize_t at
    for at in range(size):
        bytes[at] = <unsigned char>(bits >> (8 * (size - 1 - at)))
    return joined(first, <const char*>bytes, size)


cdef bytes joined(int first, const char* rest, Py_ssize_t size):
    """Return a first byte, the size where the value has one in a byte of its own, and the rest."""
    cdef bint has_length = first == TEXT_8 or first == BYTES_8
    cdef bytes made = PyBytes_FromStringAndSize(NULL, 1 + has_length + size)
    cdef char* at = PyBytes_AS_STRING(made)
    at[0] = <char>first
    if has_length:
        at[1] = <char>size
    if size:
        memcpy(at + 1 + has_length, rest, size)
    return made


cdef uint64_t big_endian(const unsigned char* at, Py_ssize_t size) noexcept:
    cdef uint64_t bits = 0
    cdef Py_ssize_t place
    for place in range(size):
        bits = bits << 8 | at[place]
    return bits


# For tests.

def pack_scalar(value):
    """Return the bytes of a value, or None where that is left to the codec."""
    return packed_scalar(value)


def unpack_scalar(bytes data):
    """Return the value of these bytes. Raises ValueError where that is left to the codec."""
    value = scalar_of(<const unsigned char*>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
    if value is NOT_SCALAR:
        raise ValueError(f"expected a single plain value, got {data!r}")
    return value
