"""An actor's wait: the future, and in words. Any thread may ask while the actor goes on."""

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


cdef list held_of(Extra extra):
    """Return the things that end with an actor, such as its ends of channels."""
    if extra is None:
        return []
    with cython.critical_section(extra):
        held = extra.held
    return [] if held is None else list(held)


cdef tuple wait_in_words(bint is_idle, Phase phase, bint event_loop, Extra extra):
    """Return an actor's state, as the records of its dispatches have it, and what it waits for or None."""
    cdef object awaited = None
    cdef object there = None
    cdef object outgoing = None
    cdef object full = None
    if phase == CLOSED:
        return "Z", None
    if extra is not None and extra.step_since != 0:
        return "R", None
    if phase >= RESTARTING and (extra is None or extra.leaving is None):  # else it is in its on_stop()
        return "Bi", "a restart" if extra is not None and extra.backing_off else "the end of its children"
    if extra is not None:
        with cython.critical_section(extra):
            awaited, there, outgoing, full = extra.awaited, extra.awaited_there, extra.outgoing, extra.full
            flights = extra.flights
        if awaited is None and flights:
            awaited = list(flights)[0]._awaited()
    room = None if outgoing is None else outgoing._what
    if full is not None:
        room = f"room at {full._short_path}"
    if room is not None:
        return "Bo", room
    if there is None and awaited is not None and event_loop:
        return "Bi", "its event loop"
    awaited = awaited if there is None else there
    if awaited is not None:
        words = None if (<Future>awaited).flag.is_set() else awaited._what
        return ("R", None) if words is None else (f"B{chr((<Future>awaited).blocks_on())}", words)
    return ("Bi", "a message") if phase == LIVE and is_idle else ("R", None)
