"""Classes whose objects only the runtime makes: one that it has not filled would point to nowhere.

The `__cinit__` of such a class takes a key that no Python code can get hold of, so neither calling
the class nor its `__new__`, nor copying or unpickling, makes an object.
"""

cdef object KEY = object()


cdef object maker_key():
    """The argument with which the runtime makes objects of sealed classes."""
    return KEY


cdef int only_by_runtime(object key, str reason) except -1:
    """Raise TypeError with the reason, unless the runtime makes the object."""
    if key is not KEY:
        raise TypeError(reason)
    return 0
