# Delegation, for a resource that threads use without waiting for each other: see delegation.hpp.
from libc.stdint cimport int64_t

cdef extern from "callboard/mailbox/delegation.hpp" namespace "callboard" nogil:
    # Request is a struct with a member `next`, a pointer to another one. From own_or_delegate() on it is the
    # owner's, and the owner says when it may be freed.
    cdef cppclass Delegation[Request]:
        bint own_or_delegate(Request* request)
        bint try_own()
        bint delegate_if_owned(Request* request)
        Request* take()
        bint try_release()
        bint has_pending()

    # For requests that are all alike.
    cdef cppclass CountedDelegation:
        bint own_or_delegate()
        bint try_own()
        int64_t settle(int64_t served)
