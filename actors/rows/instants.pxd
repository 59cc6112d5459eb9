# Aware datetimes, compared as moments in time.


cdef class MomentKey:
    # A key with moments in it. Keys are compared by `instant`, which has the moments in UTC. `given` is
    # the user's key.
    cdef object instant
    cdef object given
    cdef Py_hash_t hashed


cpdef object instant_of(object value)
cpdef object zone_of(object value)
cpdef object in_zone(object instant, object zone)
cpdef object as_key(object value)
cpdef object as_given(object key)
