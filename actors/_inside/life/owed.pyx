"""Answers that an actor owes: it returned a future that only itself will complete."""

from functools import partial

from callboard._inside.answers.future cimport Future
from callboard._inside.sending.ref cimport ActorRef, Extra
from callboard.core.asserting cimport holds
from callboard.scheduling.team cimport Team


def _settle(dict owed, Team team, Future promise, Future asked):
    """Note that an ask that was deferred to a future of its actor's own has its answer."""
    promise.detach(asked)
    if owed.pop(asked, None) is not None:
        team.add_waiting(-1)


cdef int owe(ActorRef ref, Future asked, Future promise) except -1:
    """Note that only `ref` answers: it returned a future that is no other's answer."""
    cdef Extra extra = ref.extras()
    if promise.flag.is_set():
        return 0
    if extra.owed is None:
        extra.owed = {}
    assert holds(asked not in extra.owed)
    extra.owed[asked] = promise
    ref.runtime.team.add_waiting(1)
    asked.add_done_callback(partial(_settle, extra.owed, ref.runtime.team, promise))
    return 0


cdef void fail_owed(ActorRef ref, object error) noexcept:
    """The object that would have given these answers is no more."""
    for asked in list(ref.extra.owed):
        (<Future>asked).complete(None, error)
