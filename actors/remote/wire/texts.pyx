"""Checks whether the bytes of a column of texts are valid, without the interpreter's lock."""

from libc.stdint cimport int32_t, uint8_t, uint64_t
from libc.string cimport memcpy
from libcpp.vector cimport vector

cdef uint64_t HIGHEST_BITS = 0x8080808080808080U  # of eight bytes: none is set in ASCII
# A view of a text or of bytes: a length; then the bytes, or their first four, a buffer and a place in it.
cdef Py_ssize_t VIEW = 16
cdef int32_t INLINE = 12  # bytes, at most

cdef extern from "callboard/remote/wire/texts.hpp" namespace "callboard" nogil:
    bint all_ascii(const unsigned char* letters, size_t count)
    bint all_within(const unsigned char* data, size_t count, Py_ssize_t size)


def are_ascii(const unsigned char[::1] letters not None):
    """Tell whether no byte is above 127."""
    cdef Py_ssize_t count = letters.shape[0]
    cdef bint are
    if count == 0:
        return True
    cdef const unsigned char* first = &letters[0]
    with nogil:
        are = all_ascii(first, count)
    return are


def are_utf8(const uint8_t[::1] letters not None):
    """Tell whether they are UTF-8."""
    cdef Py_ssize_t count = letters.shape[0]
    cdef bint are
    if count == 0:
        return True
    cdef const uint8_t* first = &letters[0]
    with nogil:
        are = is_utf8(first, first + count)
    return are


def lie_within(const unsigned char[::1] offsets not None, Py_ssize_t first, Py_ssize_t count, Py_ssize_t size):
    """Tell whether `count` texts from the one at `first` on lie one behind the other in `size` bytes.

    `offsets` are of 32 bits, one more than there are texts. Raises ValueError if there are not so many.
    """
    cdef Py_ssize_t places = offsets.shape[0] // 4
    cdef bint lie
    if not (0 <= first < places and 0 <= count < places - first):
        raise ValueError(f"{count} texts from {first} on, with {places} offsets")
    cdef const unsigned char* data = &offsets[4 * first]
    with nogil:
        lie = all_within(data, count, size)
    return lie


cdef bint is_utf8(const uint8_t* at, const uint8_t* end) noexcept nogil:
    """Tell whether it is as table 3-7 of the Unicode Standard has it."""
    cdef uint64_t eight
    cdef uint8_t first, low, high
    cdef int more, i
    while True:
        while end - at >= 8:
            memcpy(&eight, at, 8)
            if eight & HIGHEST_BITS:
                break
            at += 8
        if at == end:
            return True
        first = at[0]
        at += 1
        if first < 0x80:
            continue
        low, high = 0x80, 0xBF
        if 0xC2 <= first <= 0xDF:
            more = 1
        elif 0xE0 <= first <= 0xEF:
            more = 2
            if first == 0xE0:
                low = 0xA0
            elif first == 0xED:
                high = 0x9F
        elif 0xF0 <= first <= 0xF4:
            more = 3
            if first == 0xF0:
                low = 0x90
            elif first == 0xF4:
                high = 0x8F
        else:
            return False
        if end - at < more or not low <= at[0] <= high:
            return False
        for i in range(1, more):
            if at[i] & 0xC0 != 0x80:
                return False
        at += more


cdef struct Letters:
    const uint8_t* first
    Py_ssize_t count


cdef inline bint begins_letter(Letters* letters, Py_ssize_t at) noexcept nogil:
    return at == letters.count or letters.first[at] & 0xC0 != 0x80


def views_lie_within(const unsigned char[::1] views not None, Py_ssize_t first, Py_ssize_t count, list sizes not None):
    """Tell whether `count` views from the one at `first` on, also those of nulls, are in themselves or lead into
    buffers of these sizes. Raises ValueError if there are not so many views.
    """
    cdef vector[Py_ssize_t] ends = sizes
    cdef const uint8_t* view
    cdef int32_t length, which, place
    cdef Py_ssize_t at
    cdef bint lie = True
    if not (0 <= first and 0 <= count <= views.shape[0] // VIEW - first):
        raise ValueError(f"{count} views from {first} on, in {views.shape[0]} bytes")
    with nogil:
        for at in range(first, first + count):
            view = &views[0] + at * VIEW
            memcpy(&length, view, sizeof(length))
            if 0 <= length <= INLINE:
                continue
            memcpy(&which, view + 8, sizeof(which))
            memcpy(&place, view + 12, sizeof(place))
            if length < 0 or place < 0 or which < 0 or <size_t>which >= ends.size() or place > ends[which] - length:
                lie = False
                break
    return lie


def views_cut_between_letters(const uint8_t[::1] views not None, Py_ssize_t first, Py_ssize_t count, list buffers):
    """Tell whether views from the one at `first` on are of whole letters, if all of `buffers` is UTF-8.

    Texts within the views themselves are checked, too. Views that lead out of `buffers` are passed over.
    """
    cdef vector[Letters] texts
    cdef Letters letters
    cdef const uint8_t[::1] bytes_of
    cdef const uint8_t* view
    cdef int32_t length, which, place
    cdef Py_ssize_t at
    cdef bint are_whole = True
    if not (0 <= first and 0 <= count <= views.shape[0] // VIEW - first):
        raise ValueError(f"{count} views from {first} on, in {views.shape[0]} bytes")
    for buffer in buffers:
        bytes_of = memoryview(buffer).cast("B")
        letters.count = bytes_of.shape[0]
        letters.first = &bytes_of[0] if letters.count else NULL
        texts.push_back(letters)
    with nogil:
        for at in range(first, first + count):
            view = &views[0] + at * VIEW
            memcpy(&length, view, sizeof(length))
            if 0 <= length <= INLINE:
                are_whole = is_utf8(view + 4, view + 4 + length)
            else:
                memcpy(&which, view + 8, sizeof(which))
                memcpy(&place, view + 12, sizeof(place))
                if length < 0 or place < 0 or which < 0 or <size_t>which >= texts.size():
                    continue
                if place > texts[which].count - length:
                    continue
                are_whole = begins_letter(&texts[which], place) and begins_letter(&texts[which], place + length)
            if not are_whole:
                break
    return are_whole
