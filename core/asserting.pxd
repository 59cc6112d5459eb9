"""`assert holds(condition)` asserts in any function, as `asserting.hpp` says."""

cdef extern from "callboard/core/asserting.hpp" nogil:
    bint holds "callboard_holds" (bint condition)
