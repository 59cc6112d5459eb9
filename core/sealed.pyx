"""Classes whose objects only the runtime makes: one that it has not filled would point to nowhere.

The `__cinit__` of such a class takes a key that no Python code can get hold of, so neither calling
the class nor its `__new__`, nor copying or unpickling, makes an object.
"""

cdef object KEY = object()


cdef object maker_key():
    """The argument with which the runtime makes objects of sealed classes."""
    return KEY


cdef int only_by_runtime(object key, object made, str origin) except -1:
    """Raise TypeError, unless the runtime makes the object."""
    if key is not KEY:
        raise TypeError(f"{origin}, not from {type(made).__name__}()")
    return 0
