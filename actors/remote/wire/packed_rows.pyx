"""Turns rows into columns, and counts the rows of packed bytes without making them.

The checks find all that would keep `Codec.decode_rows` from reading the rows. All that headers claim must be there,
texts must be UTF-8, keys must be hashable, columns must be of one length, and the number of values has a limit.
"""

from cpython.list cimport PyList_GET_ITEM, PyList_New, PyList_SET_ITEM
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint64_t

from callboard.remote.wire.texts cimport is_utf8

cdef int DEEPEST = 32  # containers in one another; what is deeper is left to the decoder
cdef int CONTAINER = 4  # what one counts as, as when it is decoded
cdef uint64_t FEW_KEYS = 32  # which are no work, however their hashes collide


cdef struct Packed:  # what is left to be looked at
    const uint8_t* at
    const uint8_t* end
    int64_t room  # for values


cdef inline uint64_t number_of(const uint8_t* at, int width) noexcept nogil:
    cdef uint64_t number = 0
    cdef int i
    for i in range(width):
        number = number << 8 | at[i]
    return number


cdef inline bint leaps(Packed* left, uint64_t size) noexcept nogil:
    """Go over so many bytes, if they are there."""
    if <uint64_t>(left.end - left.at) < size:
        return False
    left.at += size
    return True


cdef inline bint reads(Packed* left, int width, uint64_t* number) noexcept nogil:
    """Read a number in network order, if it is there."""
    if left.end - left.at < width:
        return False
    number[0] = number_of(left.at, width)
    left.at += width
    return True


cdef inline bint leaps_text(Packed* left, uint64_t size) noexcept nogil:
    cdef const uint8_t* text = left.at
    return leaps(left, size) and is_utf8(text, left.at)


cdef inline bint holds(Packed* left, uint64_t count) noexcept nogil:
    """Tell whether there is room for a container of so many values, and take it."""
    left.room -= CONTAINER - 1 + <int64_t>count  # one of which was announced
    return left.room >= 0


cdef inline bint opens_array(Packed* left, uint64_t* count) noexcept nogil:
    """Read the header of an array, if there is one, and room for its values."""
    if left.at == left.end:
        return False
    cdef uint8_t head = left.at[0]
    left.at += 1
    if head & 0xF0 == 0x90:
        count[0] = head & 0x0F
    elif head != 0xDC and head != 0xDD:
        return False
    elif not reads(left, 2 if head == 0xDC else 4, count):
        return False
    return holds(left, count[0])


cdef bint leaps_values(Packed* left, uint64_t count, int depth) noexcept nogil:
    """Go over so many values, if they are there and plain."""
    cdef uint8_t head
    cdef uint64_t size = 0
    cdef uint64_t _i
    for _i in range(count):
        if left.at == left.end:
            return False
        head = left.at[0]
        left.at += 1
        if head < 0x80 or head >= 0xE0 or head == 0xC0 or head == 0xC2 or head == 0xC3:
            continue
        if head & 0xE0 == 0xA0:
            if not leaps_text(left, head & 0x1F):
                return False
        elif 0xCC <= head <= 0xCF or 0xD0 <= head <= 0xD3:
            if not leaps(left, 1 << (head & 3)):
                return False
        elif head == 0xCA or head == 0xCB:
            if not leaps(left, 4 if head == 0xCA else 8):
                return False
        elif 0xD9 <= head <= 0xDB:
            if not reads(left, 1 << (head - 0xD9), &size) or not leaps_text(left, size):
                return False
        elif 0xC4 <= head <= 0xC6:
            if not reads(left, 1 << (head - 0xC4), &size) or not leaps(left, size):
                return False
        elif depth == DEEPEST:
            return False
        elif head & 0xF0 == 0x90 or head == 0xDC or head == 0xDD:
            left.at -= 1
            if not opens_array(left, &size) or not leaps_values(left, size, depth + 1):
                return False
        elif head & 0xF0 == 0x80 or head == 0xDE or head == 0xDF:
            if head & 0xF0 == 0x80:
                size = head & 0x0F
            elif not reads(left, 2 if head == 0xDE else 4, &size):
                return False
            if not holds(left, 2 * size) or not leaps_entries(left, size, depth + 1):
                return False
        else:  # an extension, or what is none of msgpack
            return False
    return True


cdef bint leaps_entries(Packed* left, uint64_t count, int depth) noexcept nogil:
    """Go over so many keys and values. A key that is a container cannot be hashed.

    Whether the hashes of many numbers collide is left to the decoder; those of texts are secret.
    """
    cdef uint8_t head
    cdef uint64_t _i
    for _i in range(count):
        if left.at == left.end:
            return False
        head = left.at[0]
        if 0x80 <= head <= 0x9F or 0xDC <= head <= 0xDF:
            return False
        if count > FEW_KEYS and not (0xA0 <= head <= 0xBF or 0xD9 <= head <= 0xDB):
            return False
        if not leaps_values(left, 2, depth):
            return False
    return True


cdef bint counts_rows(Packed* left, uint64_t* rows) noexcept nogil:
    """Go over all rows, with the mark of their layout before them, and count them."""
    cdef uint64_t width = 0
    cdef uint64_t length = 0
    cdef uint64_t i
    if left.at == left.end:
        return False
    cdef uint8_t layout = left.at[0]
    left.at += 1
    if layout > 1 or not opens_array(left, &width):
        return False
    if layout == 0:
        rows[0] = width
        return leaps_values(left, width, 0) and left.at == left.end
    for i in range(width):
        if not opens_array(left, &length) or (i and length != rows[0]):
            return False
        rows[0] = length
        if not leaps_values(left, length, 1):
            return False
    return width > 0 and left.at == left.end


def count_plain_rows(const uint8_t[::1] data not None, int64_t max_values=2**62):
    """Return how many rows `Codec.encode_rows` has put into bytes; -1 if only decoding them can tell.

    So it is for rows that hold extensions, whose types the other side decides, for dicts of many keys other than
    texts, for more than `max_values`, and for bytes that are no rows. For what is counted here `Codec.decode_rows`
    raises nothing.
    """
    cdef uint64_t rows = 0
    cdef bint are_plain
    cdef Packed left
    if data.shape[0] == 0:
        return -1
    left.room = max_values - 1
    left.at = &data[0]
    left.end = left.at + data.shape[0]
    with nogil:
        are_plain = counts_rows(&left, &rows)
    return rows if are_plain else -1


def columns_of(list rows not None):
    """Return the columns of rows that are tuples, all of one length; None if they are not, or are empty."""
    cdef Py_ssize_t count = len(rows)
    cdef Py_ssize_t width, at, place, _place
    cdef object row, value
    if count == 0 or not PyTuple_CheckExact(rows[0]) or not rows[0]:
        return None
    width = PyTuple_GET_SIZE(rows[0])
    cdef list columns = [PyList_New(count) for _place in range(width)]
    for at in range(count):
        row = rows[at]
        if not PyTuple_CheckExact(row) or PyTuple_GET_SIZE(row) != width:
            return None
        for place in range(width):
            value = <object>PyTuple_GET_ITEM(row, place)
            Py_INCREF(value)  # which the list takes
            PyList_SET_ITEM(<object>PyList_GET_ITEM(columns, place), at, value)
    return columns
