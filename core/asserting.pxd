"""`assert holds(condition)`, which asserts in any function: see `asserting.hpp`."""

cdef extern from "callboard/core/asserting.hpp" nogil:
    bint holds "callboard_holds" (bint condition)
