"""The actor layer's state of each thread, in the thread's context."""

from callboard.scheduling.context cimport current_context, make_contexts_by


cdef Context* make_context() noexcept nogil:
    return new ActorContext()


make_contexts_by(make_context)


cdef ActorContext* actor_context() noexcept nogil:
    """Return the calling thread's context as the actor layer knows it: `<ActorContext*>` of any Context."""
    return <ActorContext*>current_context()
