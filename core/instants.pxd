# Aware datetimes as the moments that they are.


cdef class MomentKey:
    # A key with moments in it: told apart by `instant`, which has them in UTC, and `given` to us as that.
    cdef object instant
    cdef object given
    cdef Py_hash_t hashed


cpdef object instant_of(object value)
cpdef object zone_of(object value)
cpdef object in_zone(object instant, object zone)
cpdef object as_key(object value)
cpdef object as_given(object key)
