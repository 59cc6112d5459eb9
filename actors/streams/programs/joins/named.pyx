"""Values of rows that have names."""

import cython


@cython.final
cdef class Named:
    """Finds a value by its name: a key of a dictionary, else an attribute."""

    cdef object name

    def __init__(self, str name not None):
        self.name = name

    def __call__(self, row):
        if isinstance(row, dict):
            return (<dict>row)[self.name]
        return getattr(row, self.name)

    def __reduce__(self):
        return Named, (self.name,)
