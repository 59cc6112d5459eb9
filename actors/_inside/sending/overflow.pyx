"""What a sender does when a bounded mailbox is full: the overflow policies."""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint32_t

from callboard._inside.sending.ref cimport ActorRef
from callboard._inside.sending.values cimport take_letter
from callboard.core.clock cimport monotonic_ns
from callboard.core.node cimport Node, await_interpreter, relaxed
from callboard.mailbox.limits cimport DropRequest, Limits, Overflow
from callboard.scheduling.cell cimport Cell, Context, wait_for_room
from callboard.scheduling.worker cimport WorkerThread

from callboard.core.errors import MailboxFull

# The longest sleep of a thread outside the workers before it looks for signals (Ctrl-C).
cdef int64_t SLICE_NS = 50_000_000


cdef bint make_room(ActorRef ref, Context* context, object message, object sender) except -1:
    """Take room for one message. False: the message was dropped, and is a dead letter.

    Raises MailboxFull as the mailbox's policy says.
    """
    cdef Limits* limits = ref.cell.limits
    cdef Overflow overflow = limits.overflow
    if limits.reserve(1):
        return True
    if overflow == Overflow.drop_newest:
        limits.add_dropped(1, relaxed)
        ref.runtime.dead_letters.post(message, ref, sender, "dropped_newest")
        return False
    if overflow == Overflow.drop_oldest:
        limits.exceed(1)  # first, so that the message that is dropped is never this one's successor
        drop_oldest(ref, context)
        return True
    if overflow == Overflow.fail:
        limits.add_dropped(1, relaxed)
        raise MailboxFull(f"the mailbox of {ref.path} is full: {limits.capacity} messages wait")
    return wait_until_room(ref, context)


cdef bint wait_until_room(ActorRef ref, Context* context) except -1:
    """Policies `block`, `help` and `throttle`: an outside thread sleeps, a worker runs others meanwhile.

    With `throttle` the message is sent in any case (Das et al. 2009, section 4.3.3: who finds the queue
    too long sleeps for a time slice).
    """
    cdef Limits* limits = ref.cell.limits
    cdef int64_t begin = monotonic_ns()
    cdef int64_t left
    # Only the outermost dispatch on a thread waits. One that runs while another below it on the stack
    # waits must come back: what it waits for may wait for that other. And so the stack stays low.
    cdef uint32_t outermost = 1 if ref.runtime.manual else 0
    cdef str obstacle = None
    while limits.reserve(1) == 0:
        left = limits.timeout_ns - (monotonic_ns() - begin)
        if context.worker != NULL and limits.get_runner(relaxed) == <void*>context:
            obstacle = (
                f"is full ({limits.capacity} messages), and its actor is in the middle of the message "
                "that led to this send, so nobody can make room"
            )
        elif context.depth > outermost:
            limits.exceed(1)
            return True
        elif left <= 0:
            obstacle = (
                f"stayed full ({limits.capacity} messages) for {limits.timeout_ns / 1e9:g} s"
            )
        elif not wait_once(ref, context, left):
            obstacle = (
                f"is full ({limits.capacity} messages), and nothing else is ready in its manual system"
            )
        if obstacle is None:
            continue
        if limits.overflow == Overflow.throttle:
            limits.exceed(1)
            return True
        limits.add_dropped(1, relaxed)
        raise MailboxFull(f"the mailbox of {ref.path} {obstacle}")
    return True


cdef bint wait_once(ActorRef ref, Context* context, int64_t left) except -1:
    """Let another actor run, or sleep until there may be room, or an actor to run, `left` ns at most.

    False in a manual system in which nothing is ready.
    """
    cdef Limits* limits = ref.cell.limits
    cdef WorkerThread worker
    if context.worker == NULL:
        if ref.runtime.manual and ref.runtime.system.is_run_here:
            return ref.runtime.system.step()
        with nogil:
            wait_for_room(limits[0], context, min(left, SLICE_NS))
            await_interpreter(monotonic_ns())
        PyErr_CheckSignals()
        return True
    worker = <WorkerThread>context.worker.owner
    if limits.overflow == Overflow.help:
        if worker.step_to(ref.cell):
            return True
    elif worker.step():
        return True
    if ref.runtime.manual:
        return False
    # Nothing to run here: the receiver is with another worker, or waits in the middle of a message.
    with nogil:
        wait_for_room(limits[0], context, left)
        await_interpreter(monotonic_ns())
    return True


# What was dropped while the popping was owned: spent nodes that carry the messages, the oldest first.
# Nothing of Python may run in between: it could switch threads, and a worker that has the interpreter
# and finds the popping owned comes back at once, again and again, and never lets the interpreter go.
cdef struct Dropped:
    Node* first
    Node* last


cdef int drop_oldest(ActorRef ref, Context* context) except -1:
    """Drop the oldest message, or have the thread drop it that is popping just now."""
    cdef Dropped dropped = [NULL, NULL]
    cdef DropRequest* request = new DropRequest()
    if not ref.cell.limits.popping.own_or_delegate(request):
        return 0
    del request
    pop_one(ref.cell, &dropped)
    release(ref.cell, &dropped)
    return post(ref, context, dropped.first)


cdef int release_popping(ActorRef ref, Context* context) except -1:
    """Let the popping go, after all drops that were handed over."""
    cdef Dropped dropped = [NULL, NULL]
    release(ref.cell, &dropped)
    return post(ref, context, dropped.first)


cdef void pop_one(Cell* cell, Dropped* dropped) noexcept nogil:
    """Pop the oldest message, if there is one; it may be in its linking gap, or taken meanwhile."""
    cdef Node* spent = NULL
    cdef Node* node = cell.head.pop(spent)
    if node == NULL:
        return
    spent.kind = node.kind
    spent.flags = node.flags
    spent.tag = node.tag
    spent.first = node.first
    spent.second = node.second
    spent.set_next(NULL, relaxed)
    if dropped.last == NULL:
        dropped.first = spent
    else:
        dropped.last.set_next(spent, relaxed)
    dropped.last = spent
    cell.limits.give_back(1)
    cell.limits.add_dropped(1, relaxed)


cdef void release(Cell* cell, Dropped* dropped) noexcept nogil:
    cdef DropRequest* request
    cdef DropRequest* following
    while not cell.limits.popping.try_release():
        request = cell.limits.popping.take()
        while request != NULL:
            following = request.next
            del request
            pop_one(cell, dropped)
            request = following


cdef int post(ActorRef ref, Context* context, Node* node) except -1:
    """Make dead letters of what was dropped."""
    cdef Node* following
    while node != NULL:
        following = node.get_next(relaxed)
        message, other, asked = take_letter(node)
        context.nodes.give(node, ref.cell.pool)
        node = following
        answer = None
        if asked:
            answer = MailboxFull(
                f"the ask was dropped as the oldest message in the full mailbox of {ref.path}")
        ref.post_dead(message, other, asked, "dropped_oldest", None, answer)
    return 0
