"""Functions whose answers are looked at, for what calls them in Python."""

import cython

from callboard.streams.programs.unawaited cimport refuse_unawaited


@cython.final
cdef class Answering:
    """Calls a function with one value. A coroutine, or an asynchronous generator, is a TypeError."""

    cdef object function

    def __init__(self, function):
        self.function = function

    def __call__(self, value, /):
        answer = self.function(value)
        refuse_unawaited(answer)
        return answer


def check_answer(answer):
    """Refuse an answer that is a coroutine or an asynchronous generator. Raises TypeError."""
    refuse_unawaited(answer)
