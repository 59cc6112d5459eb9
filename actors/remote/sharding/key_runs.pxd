# The bytes of a key that are hashed, the same in every process.
#
# A key is hashed as its kind and a run of bytes, by `hash_bytes` of core/mix.hpp with a seed of the
# kind. Keys that are equal in Python have one kind and one run. Integers are little endian, of 64
# bits:
#
#     1  None            nothing                      7  datetime without a zone    microseconds
#     2  a number        Python's hash of it          8  datetime with one          the same, in UTC
#     3  not a number    nothing                      9  date                       days
#     4  str             UTF-8                       10  timedelta                  microseconds
#     5  bytes           themselves                  11  UUID                       its 16 bytes
#     6  tuple           the hashes of its items
#
# Times and days count from 1970-01-01. Python's hash of a number is part of the language, the same
# for bool, int, float and Decimal: its value modulo 2**61 - 1.

from libc.math cimport fabs, frexp, isinf, isnan, ldexp
from libc.stdint cimport int64_t, uint64_t

from callboard.core.mix cimport hash_bytes, mix

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
