"""The messages that an actor with `concurrency` has in the middle at one time: each is a flight.

The actor is LIVE as long as it may begin another message, and SUSPENDED while it has as many as it may have. Before
it stops or restarts all flights end: those on workers are closed at once, those on the event loop are cancelled.
"""

cimport cython

from callboard._inside.life.access cimport Access
from callboard._inside.sending.dead_lettering cimport FAILED, STOPPED, dead_letter_and_go_on, stopped
from callboard._inside.sending.letter cimport LastFence, Letter
from callboard._inside.sending.ref cimport LIVE, SUSPENDED, ActorRef, Extra
from callboard._inside.sending.system_kind cimport SystemKind
from callboard.core.asserting cimport holds
from callboard.scheduling.context cimport current_context

from callboard.core.errors import ActorStopped
from callboard.core.log import log


cdef class Apart:
    """Work on an actor's message elsewhere than in the actor's dispatch."""

    cdef bint cancel(self) noexcept:
        """Have it end; its flight hears of the end. False: it has not begun, and never will."""
        return False

    cdef bint recall(self) noexcept:
        """Have it never begin, and its flight hear nothing. False: it has begun, or is about to end."""
        return False


cdef class ConcurrentMessage(Wake):
    """A message that an actor has in the middle."""

    def _awaited(self):
        """Return the future that it waits for, or None. In any thread."""
        with cython.critical_section(self):
            return self.awaited

    cdef void wake(self, Future future) noexcept:
        """The future is done that it awaits. In any thread."""
        if self.ref is not None:
            self.ref.send_system(SystemKind.resume, future, self)

    cdef void count(self, bint counted) noexcept:
        """Count it in or out among what keeps the system from idleness."""
        if counted != self.counted:
            self.counted = counted
            self.ref.runtime.team.add_waiting(1 if counted else -1)


cdef void add_flight(ConcurrentMessage flight) noexcept:
    """A flight begins."""
    cdef Extra extra = flight.ref.extras()
    assert holds(flight.ref.phase == LIVE)
    if extra.flights is None:
        extra.flights = {}
    extra.flights[flight] = None
    flight.count(True)
    if len(extra.flights) >= flight.ref.recipe.concurrency:
        flight.ref.phase = SUSPENDED


cdef void end_flight(ConcurrentMessage flight) noexcept:
    """A flight is over: the actor may begin another message, unless it ends."""
    cdef ActorRef ref = flight.ref
    cdef Extra extra = ref.extra
    cdef Access access = <Access>extra.access
    assert holds(flight.coroutine is not None and flight in extra.flights)
    flight.coroutine = flight.awaited = flight.errand = None
    del extra.flights[flight]
    flight.count(False)
    if flight.failed:
        flight.failed = False
        access.failed -= 1
    if ref.phase == SUSPENDED and not extra.ends and (access is None or access.failed == 0):
        ref.phase = LIVE
    if extra.fences is not None:
        pass_fences(extra, flight)


cdef void pass_fences(Extra extra, ConcurrentMessage flight) noexcept:
    cdef list waiting = []
    for before, letter in extra.fences:
        before.discard(flight)
        if before:
            waiting.append((before, letter))
        else:
            (<Letter>letter).reply_to.complete(None, None)
    extra.fences = waiting or None


cdef void pass_fence_after_flights(ActorRef ref, Letter letter) noexcept:
    """A fence came: it passes when the messages before it are over, of which some may be in the middle."""
    cdef Extra extra = ref.extra
    if extra is None or not extra.flights:
        letter.reply_to.complete(None, None)
        return
    if extra.fences is None:
        extra.fences = []
    extra.fences.append((set(extra.flights), letter))
    if type(letter.reply_to) is LastFence:
        extra.closes = True
        ref.detour = True


cdef bint waits_for_flights(ActorRef ref, object error) noexcept:
    """End all flights before the actor restarts by `error`, or stops if that is None. True: some are not over yet."""
    cdef Extra extra = ref.extra
    cdef ConcurrentMessage flight
    if extra is None:
        return False
    if not extra.flights:
        if error is not None and extra.ends and extra.ends_by is None:
            return True  # the last flight has failed while a stop waited for it: end_after_flights() stops
        extra.ends = False
        extra.ends_by = None
        return False
    recall(ref)
    if not extra.flights:
        return False
    extra.ends_by = error if not extra.ends or extra.ends_by is not None else None  # a stop stays one
    reason = error if error is not None else stopped(ref, ref.runtime, "; it was in the middle of the ask")
    if not extra.ends:
        extra.ends = True
        ref.phase = SUSPENDED
        for flight in list(extra.flights):
            if flight.errand is None or not flight.errand.cancel():
                lose(flight, reason)
    if extra.flights:
        return True
    return waits_for_flights(ref, error)


cdef void recall(ActorRef ref) noexcept:
    """Have the messages that the event loop has not begun wait again, in their order, before all others.

    The actor's latest deed is to have its effect before they begin. The caller may run the actor's code.
    """
    cdef Access access = <Access>ref.extra.access if ref.extra is not None else None
    cdef ConcurrentMessage flight
    if access is None or not access.unbegun:
        return
    unbegun, access.unbegun = list(access.unbegun), {}
    if current_context().worker == NULL:  # first: the actor stays in work
        ref.send_system(SystemKind.wake, None, None)
    recalled = [flight for flight in unbegun if flight.coroutine is not None and flight.errand.recall()]
    if not recalled:
        return
    letters = letters_of(ref.extra, recalled)
    for flight in recalled:
        end_flight(flight)
    ref.put_back(letters)


cdef list letters_of(Extra extra, list recalled):
    """Return the messages of flights that go back, with the fences that came behind them."""
    cdef ConcurrentMessage flight
    cdef dict behind = {}  # the last of the flights before a fence -> the fences
    cdef list waiting = []
    for before, letter in extra.fences or ():
        last = None
        for flight in recalled:
            if flight in before:
                last = flight
        if last is None:
            waiting.append((before, letter))
            continue
        behind.setdefault(last, []).append(letter)
        if type((<Letter>letter).reply_to) is LastFence:
            extra.closes = False
    extra.fences = waiting or None
    letters = []
    for flight in recalled:
        letters.append(flight.letter)
        letters += behind.get(flight, ())
    return letters


cdef void hold_for_failure(ConcurrentMessage flight) noexcept:
    """A flight has failed on the event loop: no message begins until the worker has seen to that."""
    cdef ActorRef ref = flight.ref
    recall(ref)
    flight.failed = True
    (<Access>ref.extra.access).failed += 1
    if ref.phase == LIVE:
        ref.phase = SUSPENDED


cdef void lose(ConcurrentMessage flight, object error) noexcept:
    """End a flight in the middle. Its message becomes a dead letter, unless it was stashed; an ask gets `error`."""
    cdef ActorRef ref = flight.ref
    coroutine = flight.coroutine
    end_flight(flight)
    try:
        coroutine.close()
    except BaseException as raised:
        log.error("a coroutine that was closed failed", actor=ref._short_path, exc_info=raised)
    if not flight.stashed:
        fate = STOPPED if isinstance(error, ActorStopped) else FAILED
        dead_letter_and_go_on(ref, ref.runtime, flight.letter, fate, error)
