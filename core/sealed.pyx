"""Sealed classes: only the runtime makes their objects, because others would have invalid pointers.

The `__cinit__` of such a class takes a key that no Python code can get. So a call of the class or
of its `__new__`, a copy and an unpickling all fail.
"""

cdef object KEY = object()


cdef object maker_key():
    """Return the argument by which the runtime makes objects of sealed classes."""
    return KEY


cdef int only_by_runtime(object key, object made, str origin) except -1:
    """Raise TypeError, unless the runtime makes the object."""
    if key is not KEY:
        raise TypeError(f"{origin}, not from {type(made).__name__}()")
    return 0
