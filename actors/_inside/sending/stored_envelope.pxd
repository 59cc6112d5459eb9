from cpython.object cimport PyObject

from callboard._inside.answers.future cimport Future
from callboard._inside.sending.envelope cimport Envelope
from callboard._inside.sending.runtime cimport Runtime
from callboard.core.memory.node cimport Kind, Node
from callboard.scheduling.handle cimport Handle


cdef class StoredEnvelope:
    # An envelope's contents where they wait beside the mailbox, or are to become a dead letter.
    cdef object message
    cdef object sender        # an ActorRef, a Carried, or None
    cdef Future reply_to      # or None

    cdef Envelope lend(self) noexcept


cdef class Carried:
    # In the place of a message's sender, for a receiver that wants more: its context variables, or to
    # know that a timer sent it.
    cdef object sender
    cdef object variables     # a copy of the sender's Context, or None
    cdef bint is_of_timer     # in a PriorityMailbox: see priority_order.pyx
    cdef object timer         # of the receiver's own that has a key, or None: see fate_of() in dispatch.pyx


cdef class LastFence(Future):
    pass


# The message of a fence: an ask that no handler sees. Its answer says that all messages before it
# have been handled. It counts nowhere: it takes no room in the mailbox.
cdef object FENCE
cdef object RUN  # the only message of a task: see coroutine.pyx
cdef object START  # what an actor handles while its `async def on_start` runs

cdef StoredEnvelope stored_envelope(object message, object sender, Future reply_to)
cdef StoredEnvelope copy_of(Envelope* envelope)
cdef StoredEnvelope take_over(Envelope* envelope)
cdef StoredEnvelope take_stored(Node* node)
cdef void fill_from(StoredEnvelope stored, Envelope* envelope) noexcept
cdef object sender_of(Envelope* envelope)
cdef object variables_of(Envelope* envelope)
cdef void fetch_slowly(Node* node, Envelope* envelope) noexcept
cdef void end_sample(Node* node, bint is_lost) noexcept


cdef inline bint is_fence(Node* node) noexcept nogil:
    """Tell whether a node, from which nothing has been taken, carries a fence."""
    return node.kind == Kind.ask and node.first == <void*>FENCE


cdef inline void fetch(Node* node, Envelope* envelope) noexcept:
    """Take over what a node carries."""
    if node.kind <= Kind.ask:
        envelope.message = <PyObject*>node.first
        envelope.sender = <PyObject*>node.sender if node.kind == Kind.python else NULL
        envelope.reply_to = <PyObject*>node.reply_to if node.kind == Kind.ask else NULL
    else:
        fetch_slowly(node, envelope)
    envelope.stashed = False


# The fate of a message.
cdef enum Fate:
    ADMITTED        # it has its room in the mailbox
    FULL            # it has to wait for that, or whatever the mailbox's overflow policy says
    FORKED          # it was sent to the copy of an actor in a child process
    MISSENT         # it was sent to a task, which takes no messages
    # Dead letters, from here on:
    STOPPED         # the actor has stopped, or does so before the message's turn
    FAILED          # handling it failed
    DROPPED_NEWEST  # by a full mailbox
    DROPPED_OLDEST
    CANCELLED       # its asker cancelled the ask
    REFUSED         # by a full mailbox, whose error cannot reach the sender


cdef int dead_letter(Handle to, Runtime runtime, StoredEnvelope stored, Fate fate, object error=*) except -1
cdef void dead_letter_and_go_on(Handle to, Runtime runtime, StoredEnvelope stored, Fate fate, object error=*) noexcept
cdef object stopped(Handle to, Runtime runtime, str more=*)
