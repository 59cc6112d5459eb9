"""Users' functions that several lanes call at a time.

Without an interpreter lock a call counts references to its function and to the cells of the function's closure. Lanes
that call one function wait for each other at these counts. So each thread calls its own copy. It belongs to that
thread, which counts without atomic operations.

Copies differ from the function in nothing that code can see. They have its code, its globals and its defaults. If
those are replaced, the function itself is called. They share the cells of its closure, so variables that functions
assign to stay shared. A cell has copies, too, if its variable cannot be assigned to: nobody else refers to the cell,
and the function does not assign to variables of others. The one way that is left is to set `cell_contents` by hand.

Functions of a module need no copies: CPython 3.13 counts no references to them, and later releases defer it. Methods
and other callable objects have none, because their calls count references to the object.
"""

import cython

from cpython.list cimport PyList_GET_ITEM
from libc.stdint cimport uint64_t

from callboard.core.asserting cimport holds

from dis import opmap
from types import CellType, CodeType, FunctionType

from callboard.core.threads.interpreter import has_gil

cdef extern from "callboard/streams/programs/shared_function.hpp" namespace "callboard":
    uint64_t thread_number()
    bint is_nested_function(object what)
    bint is_like(object copy, object function)
    bint has_alone(object function, Py_ssize_t cell)

cdef frozenset assignments = frozenset((opmap["STORE_DEREF"], opmap["DELETE_DEREF"]))


@cython.final
cdef class SharedFunction:
    """A function, and the copies that threads call in its place."""

    def __cinit__(self, function):
        self.slots = new ThreadSlots()
        self.copies = [None] * most_slots

    def __init__(self, function):
        cdef Py_ssize_t cells = len(function.__closure__ or ())
        self.function = function
        self.alone = (False,) * cells
        if not assigns(function.__code__):
            self.alone = tuple([has_alone(function, cell) for cell in range(cells)])

    def __dealloc__(self):
        del self.slots

    cdef object here(self):
        """Return the calling thread's copy, or the function itself if there are too many threads."""
        cdef uint64_t thread = thread_number()
        cdef size_t slot = self.slots.find(thread)
        if slot == most_slots:
            copy = self.copy()
            with cython.critical_section(self):
                slot = self.slots.take(thread)
                if slot == most_slots:
                    return self.function
                assert holds(self.copies[slot] is None)
                self.copies[slot] = copy
        copy = <object>PyList_GET_ITEM(self.copies, slot)
        return copy if is_like(copy, self.function) else self.function

    cdef object copy(self):
        function = self.function
        closure = function.__closure__
        if closure is not None:
            pairs = zip(closure, self.alone)
            closure = tuple([CellType(cell.cell_contents) if alone else cell for cell, alone in pairs])
        copy = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, closure)
        copy.__kwdefaults__ = function.__kwdefaults__
        copy.__qualname__ = function.__qualname__  # errors of a call name it
        return copy


cdef bint assigns(code) except -1:
    """Whether code, or that of a function within it, assigns to variables of closures. May be true of own ones."""
    if not assignments.isdisjoint(code.co_code[::2]):
        return True
    for constant in code.co_consts:
        if isinstance(constant, CodeType) and assigns(constant):
            return True
    return False


def shared(function):
    """Return what programs keep instead of a function that several lanes may call at a time: see own()."""
    return SharedFunction(function) if not has_gil() and is_nested_function(function) else function
