"""The hashes of whole columns of keys, those that `key_hash` has for each of them.

`values` are the buffers of Arrow's arrays, of which `count` items from `first` on are meant. The result has 8 bytes
for each of them.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from callboard.remote.sharding.key_runs cimport (
    BYTES,
    DAY,
    DURATION,
    LOCAL_TIME,
    NONE,
    NUMBER,
    TEXT,
    TIME,
    TUPLE,
    hash_double,
    hash_run,
    hash_whole,
    hash_word,
    residue,
)

KINDS = {"text": TEXT, "bytes": BYTES, "local": LOCAL_TIME, "time": TIME, "day": DAY, "duration": DURATION}
"""The kinds that columns of words, or of runs of bytes, may be of."""


cdef int check_size(Py_ssize_t has, Py_ssize_t first, Py_ssize_t count, Py_ssize_t width) except -1:
    if first < 0 or count < 0 or has < (first + count) * width:
        raise ValueError(f"{count} items of {width} bytes from number {first} on in {has} bytes")
    return 0


def hash_numbers(str what, const uint8_t[::1] values, Py_ssize_t first, Py_ssize_t count):
    """Return the hashes of a column of numbers: "int64", "uint64" or "double"."""
    check_size(values.size, first, count, 8)
    found = bytearray(8 * count)
    cdef uint8_t[::1] view = found
    cdef uint64_t* out
    cdef const int64_t* words
    cdef Py_ssize_t at
    if not count:
        return found
    out = <uint64_t*>&view[0]
    words = <const int64_t*>&values[0] + first
    cdef int which = ("int64", "uint64", "double").index(what)
    with nogil:
        for at in range(count):
            if which == 0:
                out[at] = hash_whole(words[at])
            elif which == 1:
                out[at] = hash_word(NUMBER, residue(<uint64_t>words[at], False))
            else:
                out[at] = hash_double((<const double*>words)[at])
    return found


def hash_words(str kind, const uint8_t[::1] values, Py_ssize_t first, Py_ssize_t count):
    """Return the hashes of a column of integers of 64 bits that are times or days."""
    check_size(values.size, first, count, 8)
    cdef uint64_t number = KINDS[kind]
    found = bytearray(8 * count)
    cdef uint8_t[::1] view = found
    cdef uint64_t* out
    cdef const int64_t* words
    cdef Py_ssize_t at
    if not count:
        return found
    out = <uint64_t*>&view[0]
    words = <const int64_t*>&values[0] + first
    with nogil:
        for at in range(count):
            out[at] = hash_word(number, words[at])
    return found


def hash_runs(
    str kind, const uint8_t[::1] offsets, const uint8_t[::1] data, Py_ssize_t first, Py_ssize_t count
):
    """Return the hashes of a column of texts or bytes, whose `offsets` into `data` have 64 bits."""
    if not count:
        return bytearray()  # such a column may be without offsets
    check_size(offsets.size, first, count + 1, 8)
    cdef uint64_t number = KINDS[kind]
    found = bytearray(8 * count)
    cdef uint8_t[::1] view = found
    cdef uint64_t* out
    cdef const int64_t* bounds
    cdef const char* base = NULL
    cdef Py_ssize_t at
    cdef bint is_sound = True
    cdef Py_ssize_t size = data.size
    out = <uint64_t*>&view[0]
    bounds = <const int64_t*>&offsets[0] + first
    if size:
        base = <const char*>&data[0]
    with nogil:
        for at in range(count):
            if bounds[at] < 0 or bounds[at + 1] < bounds[at] or bounds[at + 1] > size:
                is_sound = False
                break
            out[at] = hash_run(number, base + bounds[at], bounds[at + 1] - bounds[at])
    if not is_sound:
        raise ValueError(f"item {at} lies outside of the {size} bytes of its column")
    return found


def mark_nulls(uint8_t[::1] hashes, const uint8_t[::1] validity, Py_ssize_t first):
    """Put None's hash where a bit of Arrow's validity bitmap, from number `first` on, is not set."""
    cdef Py_ssize_t count = hashes.size // 8
    check_size(8 * validity.size, first, count, 1)
    cdef uint64_t none = hash_run(NONE, NULL, 0)
    cdef uint64_t* out
    cdef const uint8_t* bits
    cdef Py_ssize_t at
    if not count:
        return
    out = <uint64_t*>&hashes[0]
    bits = &validity[0]
    with nogil:
        for at in range(count):
            if not bits[(first + at) >> 3] >> ((first + at) & 7) & 1:
                out[at] = none


def hash_tuples(columns, Py_ssize_t count):
    """Return the hashes of tuples with an item of each column, of which the hashes are given."""
    cdef Py_ssize_t width = len(columns)
    cdef const uint8_t[::1] column
    rows = bytearray(8 * count * width)
    found = bytearray(8 * count)
    cdef uint8_t[::1] view = found, run = rows
    cdef uint64_t* out
    cdef uint64_t* items
    cdef const uint64_t* of_column
    cdef Py_ssize_t at, place
    if not count:
        return found
    out = <uint64_t*>&view[0]
    items = <uint64_t*>&run[0] if width else NULL
    for place in range(width):
        column = columns[place]
        check_size(column.size, 0, count, 8)
        of_column = <const uint64_t*>&column[0]
        with nogil:
            for at in range(count):
                items[at * width + place] = of_column[at]
    with nogil:
        for at in range(count):
            out[at] = hash_run(TUPLE, <const char*>(items + at * width), 8 * width)
    return found
