# Answers of a user's function that would never be awaited: see unawaited.hpp.
cdef extern from "callboard/streams/programs/unawaited.hpp" namespace "callboard":
    int refuse_unawaited(object answer) except -1
    bint is_true(object answer) except -1
