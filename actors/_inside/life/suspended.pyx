"""The end of an `async def receive` in the middle."""

cimport cython

from callboard._inside.sending.dead_lettering cimport FAILED, STOPPED, dead_letter_and_go_on
from callboard._inside.sending.letter cimport Letter
from callboard._inside.sending.ref cimport LIVE, SUSPENDED, ActorRef, Extra
from callboard.core.asserting cimport holds

from callboard.core.errors import ActorStopped
from callboard.core.log import log


cdef void set_awaited(Extra extra, object awaited) noexcept:
    with cython.critical_section(extra):  # others look for cycles; see ActorRef.awaited()
        extra.awaited = awaited


cdef void end_suspension(ActorRef ref) noexcept:
    """The coroutine is over: the actor handles messages again."""
    cdef Extra extra = ref.extra
    assert holds((ref.phase == SUSPENDED or extra.leaving is not None) and extra.coroutine is not None)
    set_awaited(extra, None)
    extra.coroutine = extra.letter = None
    if ref.phase == SUSPENDED:  # else it is its `on_stop` that is over
        ref.phase = LIVE
    if extra.detached:
        extra.detached = False
        ref.runtime.team.add_waiting(-1)


cdef void close_coroutine(ActorRef ref, object error) noexcept:
    """End a coroutine in the middle, because the actor stops (an ActorStopped) or restarts. Its
    message becomes a dead letter, unless it was stashed; an ask gets `error`."""
    cdef Extra extra = ref.extra
    cdef Letter letter
    if extra is None or extra.coroutine is None:
        return
    coroutine, letter, stashed = extra.coroutine, extra.letter, extra.stashed
    assert holds(letter is not None)
    end_suspension(ref)
    ref.starting = False
    try:
        coroutine.close()
    except BaseException as raised:
        log.error("a coroutine that was closed failed", actor=ref._short_path, exc_info=raised)
    if not stashed:
        fate = STOPPED if isinstance(error, ActorStopped) else FAILED
        dead_letter_and_go_on(ref, ref.runtime, letter, fate, error)
