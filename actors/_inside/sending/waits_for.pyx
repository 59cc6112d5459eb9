"""What an actor waits for: the future, and in words. Any thread may ask while the actor goes on."""

cimport cython

from callboard._inside.answers.future cimport Future
from callboard._inside.sending.state cimport CLOSED, LIVE, RESTARTING


cdef object awaited_of(Extra extra):
    """Return the future that an actor waits for, or None."""
    # A reader of a field must own it until it has a reference of its own.
    if extra is None:
        return None
    with cython.critical_section(extra):
        awaited = extra.awaited if extra.awaited_there is None else extra.awaited_there
    return awaited


cdef object wait_in_words(bint is_idle, Phase phase, bint event_loop, Extra extra):
    """Return what an actor waits for; None if it has something to do, or has ended."""
    cdef object awaited = None
    cdef object there = None
    cdef object outgoing = None
    if phase == CLOSED:
        return None
    if phase >= RESTARTING:
        return "a restart" if extra is not None and extra.backing_off else "the end of its children"
    if extra is not None:
        with cython.critical_section(extra):
            awaited, there, outgoing = extra.awaited, extra.awaited_there, extra.outgoing
    room = None if outgoing is None else outgoing._what
    if room is not None:
        return room
    if there is None and awaited is not None and event_loop:
        return "its event loop"
    awaited = awaited if there is None else there
    if awaited is not None:
        return None if (<Future>awaited).flag.is_set() else awaited._what
    return "a message" if phase == LIVE and is_idle else None
