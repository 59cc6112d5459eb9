"""Messages that an actor has begun and not finished: an `async def receive` waits in the middle of each.

Most actors have one at a time. One with `concurrency` has several.
"""

import asyncio
import threading

cimport cython

from callboard._inside.answers.waiters cimport driven_by_worker
from callboard._inside.sending.ref cimport LIVE, SUSPENDED, ActorRef, Extra
from callboard._inside.sending.state cimport Concurrency
from callboard._inside.sending.stored_envelope cimport (
    FAILED, STOPPED, LastFence, StoredEnvelope, dead_letter_and_go_on, stopped,
)
from callboard._inside.sending.system_kind cimport SystemKind
from callboard.core.asserting cimport holds
from callboard.scheduling.context cimport current_context
from callboard.scheduling.team cimport Team

from callboard.core.errors import ActorStopped
from callboard.core.log import log


# --- the only message in the middle --------------------------------------------------------------------


cdef void set_awaited(Extra extra, object awaited) noexcept:
    with cython.critical_section(extra):  # other threads look for circles; see ActorRef.awaited()
        extra.awaited = awaited


cdef void end_suspension(ActorRef ref) noexcept:
    """The coroutine is over: the actor handles messages again."""
    cdef Extra extra = ref.extra
    assert holds((ref.phase == SUSPENDED or extra.leaving is not None) and extra.coroutine is not None)
    set_awaited(extra, None)
    extra.coroutine = extra.stored = None
    if ref.phase == SUSPENDED:  # else it is its `on_stop` that is over
        ref.phase = LIVE
    if extra.detached:
        extra.detached = False
        ref.runtime.team.add_waiting(-1)


cdef class _EndOfRest(Wake):
    cdef Team team

    cdef void wake(self, object future) noexcept:
        self.team.add_waiting(1)


cdef int rest_until(Future future, Team team) except -1:
    """Do not count the actor as unrest until `future` is done: it waits for input."""
    cdef _EndOfRest end = _EndOfRest.__new__(_EndOfRest)
    end.team = team
    # First of all: what resumes the actor may let it end, and be counted out, before the others are called.
    with cython.critical_section(future):
        if future.flag.is_set():
            return 0
        others = future.callbacks
        if type(others) is not list:
            others = [] if others is None else [others]
        future.callbacks = [end, *others]
    team.add_waiting(-1)
    return 0


cdef void close_coroutine(ActorRef ref, object error) noexcept:
    """End a coroutine in the middle, because the actor stops (an ActorStopped) or restarts. Its
    message becomes a dead letter, unless it was stashed; an ask gets `error`."""
    cdef Extra extra = ref.extra
    cdef StoredEnvelope stored
    if extra is None or extra.coroutine is None:
        return
    coroutine, stored, stashed = extra.coroutine, extra.stored, extra.stashed
    assert holds(stored is not None)
    end_suspension(ref)
    ref.starting = False
    try:
        coroutine.close()
    except BaseException as raised:
        log.error("a coroutine that was closed failed", actor=ref._short_path, exc_info=raised)
    if not stashed:
        fate = STOPPED if isinstance(error, ActorStopped) else FAILED
        dead_letter_and_go_on(ref, ref.runtime, stored, fate, error)


# --- concurrent messages -------------------------------------------------------------------------------
#
# The actor is LIVE as long as it may begin another message, and SUSPENDED while it has as many as it may have. Before
# it stops or restarts all of them end: those on workers are closed at once, those on the event loop are cancelled.


cdef class TaskElsewhere:
    """Work on an actor's message elsewhere than in the actor's dispatch."""

    cdef bint cancel(self) noexcept:
        """Have it end, and the message told of that. False: it has not begun, and never will."""
        return False

    cdef bint recall(self) noexcept:
        """Have it never begin, and the message told nothing. False: it has begun, or is about to end."""
        return False


cdef class ConcurrentMessage(Wake):
    """A message that an actor has in the middle, perhaps beside others."""

    def _awaited(self):
        """Return the future that it waits for, or None. In any thread."""
        with cython.critical_section(self):
            return self.awaited

    cdef void wake(self, object future) noexcept:
        """The future is done that it awaits. In any thread."""
        if self.ref is not None:
            self.ref.send_system(SystemKind.resume, future, self)

    cdef void count(self, bint counted) noexcept:
        """Count it in or out among what keeps the system from idleness."""
        if counted != self.counted:
            self.counted = counted
            self.ref.runtime.team.add_waiting(1 if counted else -1)


cdef void add_concurrent(ConcurrentMessage message) noexcept:
    """A concurrent message begins."""
    cdef Concurrency concurrency = message.ref.extras().concurrency_now()
    assert holds(message.ref.phase == LIVE)
    concurrency.messages[message] = None
    message.count(True)
    if len(concurrency.messages) >= message.ref.recipe.concurrency:
        message.ref.phase = SUSPENDED


cdef void end_concurrent(ConcurrentMessage message) noexcept:
    """A concurrent message is over: the actor may begin another message, unless it ends."""
    cdef ActorRef ref = message.ref
    cdef Concurrency concurrency = ref.extra.concurrency
    cdef StepLock step_lock = <StepLock>concurrency.step_lock
    assert holds(message.coroutine is not None and message in concurrency.messages)
    message.coroutine = message.awaited = message.loop_task = None
    del concurrency.messages[message]
    message.count(False)
    if message.failed:
        message.failed = False
        step_lock.failed -= 1
    if ref.phase == SUSPENDED and not concurrency.ends and (step_lock is None or step_lock.failed == 0):
        ref.phase = LIVE
    if concurrency.fences is not None:
        pass_fences(concurrency, message)


cdef void pass_fences(Concurrency concurrency, ConcurrentMessage message) noexcept:
    cdef list waiting = []
    for before, stored in concurrency.fences:
        before.discard(message)
        if before:
            waiting.append((before, stored))
        else:
            (<StoredEnvelope>stored).reply_to.complete(None, None)
    concurrency.fences = waiting or None


cdef void pass_fence_after_concurrent(ActorRef ref, StoredEnvelope stored) noexcept:
    """A fence came: it passes when the messages before it are over, of which some may be in the middle."""
    cdef Concurrency concurrency = ref.extra.concurrency if ref.extra is not None else None
    if concurrency is None or not concurrency.messages:
        stored.reply_to.complete(None, None)
        return
    if concurrency.fences is None:
        concurrency.fences = []
    concurrency.fences.append((set(concurrency.messages), stored))
    if type(stored.reply_to) is LastFence:
        concurrency.closes = True
        ref.detour = True


cdef bint waits_for_concurrent(ActorRef ref, object error) noexcept:
    """End all concurrent messages before the actor restarts by `error`, or stops if that is None.

    True: some are not over yet.
    """
    cdef Concurrency one = ref.extra.concurrency if ref.extra is not None else None
    cdef ConcurrentMessage message
    if one is None:
        return False
    if not one.messages:
        if error is not None and one.ends and one.ends_by is None:
            return True  # the last message has failed while a stop waited for it: end_after_concurrent() stops
        one.ends = False
        one.ends_by = None
        return False
    recall(ref)
    if not one.messages:
        return False
    one.ends_by = error if not one.ends or one.ends_by is not None else None  # a stop stays one
    reason = error if error is not None else stopped(ref, ref.runtime, "; it was in the middle of the ask")
    if not one.ends:
        one.ends = True
        ref.phase = SUSPENDED
        for message in list(one.messages):
            if message.loop_task is None or not message.loop_task.cancel():
                lose(message, reason)
    if one.messages:
        return True
    return waits_for_concurrent(ref, error)


cdef void recall(ActorRef ref) noexcept:
    """Have the messages that the event loop has not begun wait again, in their order, before all others.

    The actor's latest action takes effect before they begin. The caller may run the actor's code.
    """
    cdef Concurrency concurrency = ref.extra.concurrency if ref.extra is not None else None
    cdef StepLock step_lock = <StepLock>concurrency.step_lock if concurrency is not None else None
    cdef ConcurrentMessage message
    if step_lock is None or not step_lock.unbegun:
        return
    unbegun, step_lock.unbegun = list(step_lock.unbegun), {}
    if current_context().worker == NULL:  # first: the actor stays in work
        ref.send_system(SystemKind.wake, None, None)
    recalled = [message for message in unbegun if message.coroutine is not None and message.loop_task.recall()]
    if not recalled:
        return
    envelopes = envelopes_of(concurrency, recalled)
    for message in recalled:
        end_concurrent(message)
    ref.put_back(envelopes)


cdef list envelopes_of(Concurrency concurrency, list recalled):
    """Return the concurrent messages that go back, with the fences that came behind them."""
    cdef ConcurrentMessage message
    cdef dict behind = {}  # the last of the messages before a fence -> the fences
    cdef list waiting = []
    for before, stored in concurrency.fences or ():
        last = None
        for message in recalled:
            if message in before:
                last = message
        if last is None:
            waiting.append((before, stored))
            continue
        behind.setdefault(last, []).append(stored)
        if type((<StoredEnvelope>stored).reply_to) is LastFence:
            concurrency.closes = False
    concurrency.fences = waiting or None
    envelopes = []
    for message in recalled:
        envelopes.append(message.stored)
        envelopes += behind.get(message, ())
    return envelopes


cdef void hold_for_failure(ConcurrentMessage message) noexcept:
    """A concurrent message has failed on the event loop: no message begins until the worker has seen to that."""
    cdef ActorRef ref = message.ref
    recall(ref)
    message.failed = True
    (<StepLock>ref.extra.concurrency.step_lock).failed += 1
    if ref.phase == LIVE:
        ref.phase = SUSPENDED


cdef void lose(ConcurrentMessage message, object error) noexcept:
    """End a message in the middle. It becomes a dead letter, unless it was stashed; an ask gets `error`."""
    cdef ActorRef ref = message.ref
    coroutine = message.coroutine
    end_concurrent(message)
    try:
        coroutine.close()
    except BaseException as raised:
        log.error("a coroutine that was closed failed", actor=ref._short_path, exc_info=raised)
    if not message.stashed:
        fate = STOPPED if isinstance(error, ActorStopped) else FAILED
        dead_letter_and_go_on(ref, ref.runtime, message.stored, fate, error)


# --- one at a time -------------------------------------------------------------------------------------
#
# For an actor whose messages run on the event loop while its worker begins others.
#
# A worker waits for the end of a step, which is short. A step does not wait for a dispatch, since that would hold up
# the loop: it yields a future, and goes on when the dispatch is over. Steps that wait keep their order, and later ones
# come behind them, so that messages begin in theirs.


cdef class StepLock:
    """Lets one at a time run an actor's code."""

    def __cinit__(self):
        self.lock = threading.Lock()
        self.waiting = {}
        self.begun = []
        self.unbegun = {}

    cdef object enter_on_loop(self, object step):
        """Let a step enter, and return None; or return a future that it is to yield before it tries again."""
        if self.try_enter(step):
            return None
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        future._asyncio_future_blocking = True  # as its __await__ does
        with cython.critical_section(self):
            self.loop = loop
            self.waiting[step] = future  # in its old place, if it has one
        # A dispatch that left before that has not seen the step; one that leaves later does.
        if not self.try_enter(step):
            return future
        future.cancel()  # nobody waits for it
        return None

    cdef bint try_enter(self, object step) except -1:
        if not self.waiting:
            return self.lock.acquire(False)
        if next(iter(self.waiting)) is not step or not self.lock.acquire(False):
            return False
        del self.waiting[step]
        return True

    cdef void leave_on_loop(self) noexcept:
        self.lock.release()
        if self.waiting:
            self.resume_steps()

    cdef int let_go_on(self, object step) except -1:
        """A step no longer wants to enter."""
        if self.waiting.pop(step, None) is not None:
            self.resume_steps()
        return 0

    cdef void enter_on_worker(self) noexcept:
        """Wait for the end of the step in work, with the interpreter released."""
        self.lock.acquire()
        assert holds(not self.begun)

    cdef void leave_on_worker(self) noexcept:
        self.lock.release()
        with cython.critical_section(self):
            waits = len(self.waiting) != 0
        if waits:
            try:
                self.loop.call_soon_threadsafe(self.resume_steps)
            except RuntimeError:
                pass  # the loop was closed

    def resume_steps(self):
        """Have the first step that waits go on. On the loop's thread."""
        for future in self.waiting.values():
            if not future.done():
                future.set_result(None)
            return


# --- letting others run --------------------------------------------------------------------------------


cdef class Checkpoint(Future):
    """Await it to let other actors, or other tasks of the event loop, run before this one goes on.

    LPEL's yield (Prokesch 2011, section 4.3.3).
    """

    def __init__(self):
        pass

    @property
    def _wait_cause(self):
        return None  # it is ready

    def __await__(self):
        if driven_by_worker():
            yield self  # the dispatcher puts the actor behind those that are ready
        else:
            yield  # as asyncio.sleep(0) does
