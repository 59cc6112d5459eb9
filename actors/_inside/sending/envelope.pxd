# A message with what came with it, while it is in work, and what the actor layer keeps in a cell.
from cpython.object cimport PyObject
from libc.stdint cimport uint32_t

from callboard.core.memory.node cimport Node
from callboard.scheduling.cell cimport Cell, Context, Run


cdef extern from * nogil:
    """
    #include "callboard/scheduling/cell.hpp"
    #include "callboard/scheduling/worker.hpp"
    namespace callboard {

    // References: owned by a dispatch that has taken the message out of a mailbox; lent by who sends it,
    // and by the Letter of one that waits elsewhere.
    struct Envelope {
        PyObject* message;
        PyObject* sender;    // its ActorRef, or a Carried; null if the message was asked, or by no actor
        PyObject* reply_to;  // the Future that wants the answer; null if the message was told
        bool stashed;        // it waits for its second turn, and is in work no more
    };

    inline Envelope to_tell(PyObject* message, PyObject* sender) { return {message, sender, nullptr, false}; }
    inline Envelope to_ask(PyObject* message, PyObject* reply_to) { return {message, nullptr, reply_to, false}; }

    // Writes a message into a node, with references of its own. Inlined wherever messages are sent: an
    // envelope that is handed on costs more than the rest.
    [[gnu::always_inline]] inline Node* filled(Node* node, Envelope envelope) {
        Py_INCREF(envelope.message);
        node->first = envelope.message;
        if (envelope.reply_to != nullptr) {
            Py_INCREF(envelope.reply_to);
            node->kind = Kind::ask;
            node->second = envelope.reply_to;
        } else {
            Py_XINCREF(envelope.sender);
            node->kind = Kind::python;
            node->second = envelope.sender;
        }
        return node;
    }

    // For a call that is not inlined: where this copy is what lies in memory, its original can stay in
    // registers.
    inline Envelope copied(Envelope envelope) {
        return {envelope.message, envelope.sender, envelope.reply_to, envelope.stashed};
    }

    // Pushes a message that has its room. True: the caller must wake the actor.
    [[gnu::always_inline]] inline bool push(Cell* to, Context* context, Envelope envelope) {
        return to->tail.push(filled(context->nodes.take(to->pool), envelope));
    }

    // The cell of a ref: what the scheduler knows, and what dispatches keep between them. All of it
    // belongs to the readiness owner, but for what is set before the cell is first scheduled.
    struct ActorCell : Cell {
        using Cell::Cell;
        void* object{nullptr};       // the actor itself, once constructed; borrowed from the owner
        Envelope* in_work{nullptr};  // the message that the actor handles just now
        void* variables{nullptr};    // the actor's context variables while it does not run; owned
        void* overflow{nullptr};     // a bounded mailbox's policy, which lives for ever: see overflow.pyx
    };

    }  // namespace callboard
    """
    cdef cppclass Envelope "callboard::Envelope":
        PyObject* message
        PyObject* sender
        PyObject* reply_to
        bint stashed

    Envelope to_tell "callboard::to_tell" (PyObject* message, PyObject* sender)
    Envelope to_ask "callboard::to_ask" (PyObject* message, PyObject* reply_to)

    Envelope copied "callboard::copied" (Envelope envelope)
    Node* filled "callboard::filled" (Node* node, Envelope envelope)
    bint push "callboard::push" (Cell* to, Context* context, Envelope envelope)

    cdef cppclass ActorCell "callboard::ActorCell" (Cell):
        ActorCell(Run run, void* owner, uint32_t flags)
        void* object
        Envelope* in_work
        void* variables
        void* overflow
