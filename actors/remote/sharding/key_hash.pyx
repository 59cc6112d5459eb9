"""A hash of keys that is the same in every process: of one key, of columns of keys, and shards by it.

A key is hashed as its kind and a run of bytes, by `hash_bytes` of core/mix.hpp with a seed of the
kind. Keys that are equal in Python have one kind and one run. Integers are little endian, of 64
bits:

    1  None            nothing                      7  datetime without a zone    microseconds
    2  a number        Python's hash of it          8  datetime with one          the same, in UTC
    3  not a number    nothing                      9  date                       days
    4  str             UTF-8                       10  timedelta                  microseconds
    5  bytes           themselves                  11  UUID                       its 16 bytes
    6  tuple           the hashes of its items

Times and days count from 1970-01-01. Python's hash of a number is part of the language, the same
for bool, int, float and Decimal: its value modulo 2**61 - 1.
"""

from datetime import date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.math cimport fabs, frexp, isinf, isnan, ldexp
from libc.stdint cimport int64_t, uint8_t, uint64_t

from callboard.core.mix cimport hash_bytes, mix

from callboard.core.text import safe_repr
from callboard.remote.errors import CodecError

cdef int DEEPEST = 64  # tuples in one another, as the codec has it

cdef object NAIVE = datetime(1970, 1, 1)
cdef object MICROSECOND = timedelta(microseconds=1)
cdef long FIRST_DAY = date(1970, 1, 1).toordinal()


# --- the bytes that are hashed ---------------------------------------------------------------------------------------


cdef enum:
    NONE = 1
    NUMBER = 2
    NOT_A_NUMBER = 3
    TEXT = 4
    BYTES = 5
    TUPLE = 6
    LOCAL_TIME = 7
    TIME = 8
    DAY = 9
    DURATION = 10
    IDENTIFIER = 11


cdef inline uint64_t modulus() noexcept nogil:
    return (<uint64_t>1 << 61) - 1


cdef inline uint64_t hash_run(uint64_t kind, const char* data, size_t size) noexcept nogil:
    return hash_bytes(mix(kind), data, size)


cdef inline uint64_t hash_word(uint64_t kind, int64_t word) noexcept nogil:
    return hash_run(kind, <const char*>&word, sizeof(word))


cdef inline int64_t residue(uint64_t size, bint negative) noexcept nogil:
    cdef int64_t found = <int64_t>(size % modulus())
    if negative:
        found = -found
    return -2 if found == -1 else found


cdef inline uint64_t hash_whole(int64_t value) noexcept nogil:
    cdef uint64_t size = <uint64_t>value
    return hash_word(NUMBER, residue(0 - size if value < 0 else size, value < 0))


cdef inline uint64_t hash_double(double value) noexcept nogil:
    cdef int exponent
    cdef uint64_t bits
    if isnan(value):
        return hash_run(NOT_A_NUMBER, NULL, 0)
    if isinf(value):
        return hash_word(NUMBER, 314159 if value > 0 else -314159)
    bits = <uint64_t>ldexp(frexp(fabs(value), &exponent), 53)
    exponent = (exponent - 53) % 61
    if exponent < 0:
        exponent += 61
    # To multiply by a power of two is to turn the 61 bits round.
    bits = (bits << exponent & modulus()) | bits >> (61 - exponent)
    return hash_word(NUMBER, residue(bits, value < 0))


# --- one key ---------------------------------------------------------------------------------------------------------


cdef uint64_t hash_object(object key, int depth) except? 0:
    cdef bytes data
    cdef uint64_t part
    cls = type(key)
    if cls is int or cls is bool:
        return hash_word(NUMBER, hash(key))
    if cls is str:
        try:
            data = (<str>key).encode()
        except UnicodeEncodeError as error:
            raise CodecError(f"the key {safe_repr(key)} is not valid text: {error.reason}") from None
        return hash_run(TEXT, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
    if key is None:
        return hash_run(NONE, NULL, 0)
    if cls is float:
        return hash_double(key)
    if cls is bytes:
        return hash_run(BYTES, PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key))
    if cls is tuple:
        if depth == DEEPEST:
            raise CodecError(f"a key has more than {DEEPEST} tuples in one another")
        run = bytearray()
        for item in <tuple>key:
            part = hash_object(item, depth + 1)
            run += (<const char*>&part)[:8]
        data = bytes(run)
        return hash_run(TUPLE, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
    return hash_rare(key, cls)


cdef uint64_t hash_rare(object key, object cls) except? 0:
    cdef bytes data
    if cls is Decimal:
        return hash_run(NOT_A_NUMBER, NULL, 0) if key.is_nan() else hash_word(NUMBER, hash(key))
    if cls is datetime:
        offset = key.utcoffset()
        if offset is None:
            return hash_word(LOCAL_TIME, (key.replace(tzinfo=None) - NAIVE) // MICROSECOND)
        return hash_word(TIME, (key.replace(tzinfo=None) - NAIVE - offset) // MICROSECOND)
    if cls is date:
        return hash_word(DAY, key.toordinal() - FIRST_DAY)
    if cls is timedelta:
        try:
            return hash_word(DURATION, key // MICROSECOND)
        except OverflowError:
            raise CodecError(f"{key!r} is too long for a key: it has 64 bits of microseconds") from None
    if cls is UUID:
        data = key.bytes
        return hash_run(IDENTIFIER, PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data))
    raise CodecError(
        f"a key must be None, a number, str, bytes, datetime, date, timedelta, UUID, or a tuple of these, "
        f"got a {cls.__module__}.{cls.__qualname__}"
    )


def key_hash(key):
    """Return the hash of a key, below 2**64. Equal keys have one, and all NaN, too.

    Raises CodecError for anything but a key, which types exactly decide: an instance of a subclass may be equal to
    anything.
    """
    return hash_object(key, 0)


# --- columns of keys -------------------------------------------------------------------------------------------------
#
# `values` are the buffers of Arrow's arrays, of which `count` items from `first` on are meant. The result has 8 bytes
# for each of them.

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


# --- rows divided among shards ---------------------------------------------------------------------------------------


def places_of_shards(const uint8_t[::1] hashes, Py_ssize_t shards):
    """Return for each shard the numbers of its rows, in their order, as integers of 64 bits.

    The shard of a hash is its remainder.
    """
    cdef Py_ssize_t count = hashes.size // 8
    if not count:
        return [b""] * shards
    ends = bytearray(8 * shards)
    order = bytearray(8 * count)
    cdef uint8_t[::1] ends_view = ends, order_view = order
    cdef const uint64_t* of_rows = <const uint64_t*>&hashes[0]
    cdef int64_t* end = <int64_t*>&ends_view[0]
    cdef int64_t* rows = <int64_t*>&order_view[0]
    cdef int64_t before = 0, size
    cdef Py_ssize_t at, shard
    with nogil:
        for at in range(count):
            end[of_rows[at] % shards] += 1
        for shard in range(shards):  # where each shard's rows begin; the loop below moves it on
            size, end[shard] = end[shard], before
            before += size
        for at in range(count):
            shard = of_rows[at] % shards
            rows[end[shard]] = at
            end[shard] += 1
    bounds = [0, *[8 * end[shard] for shard in range(shards)]]
    return [memoryview(order)[bounds[shard] : bounds[shard + 1]] for shard in range(shards)]
