from callboard._inside.answers.future cimport Future


cdef class Checkpoint(Future):
    pass
