"""Answers that an actor owes: it returned a future that only itself will complete."""

from callboard._inside.answers.future cimport Future
from callboard._inside.sending.ref cimport ActorRef, Extra


cdef class _Owed:
    """Called when an ask that was deferred to a future of its actor's own has its answer."""

    cdef dict owed
    cdef object team
    cdef Future promise

    def __call__(self, asked):
        self.promise.detach(asked)
        if self.owed.pop(asked, None) is not None:
            self.team.add_waiting(-1)


cdef int owe(ActorRef ref, Future asked, Future promise) except -1:
    """Note that nobody but `ref` answers: it returned a future that is no other's answer."""
    cdef Extra extra = ref.extras()
    cdef _Owed owed
    if promise.flag.is_set():
        return 0
    if extra.owed is None:
        extra.owed = {}
    owed = _Owed.__new__(_Owed)
    owed.owed = extra.owed
    owed.team = ref.runtime.team
    owed.promise = promise
    owed.owed[asked] = promise
    owed.team.add_waiting(1)
    asked.add_done_callback(owed)
    return 0


cdef void fail_owed(ActorRef ref, object error) noexcept:
    """The object that would have given these answers is no more."""
    for asked in list(ref.extra.owed):
        (<Future>asked).complete(None, error)
