// The cell of a ref: what the actor layer keeps in it, and how a message gets there.
#pragma once

#include <Python.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "callboard/_inside/sending/envelope.hpp"
#include "callboard/core/memory/node.hpp"
#include "callboard/core/monitoring/actor_times.hpp"
#include "callboard/scheduling/cell.hpp"
#include "callboard/scheduling/context.hpp"

namespace callboard {

// Flags of a cell that the scheduler never reads. Set before it is first scheduled, but for `closed`, which
// its runner sets, and `forked`. A closed cell goes on through the states of others, and its dispatch turns
// messages into dead letters.
inline constexpr std::uint32_t limited = first_own_flag;             // `limits` is there: bounded
inline constexpr std::uint32_t closed_cell = first_own_flag << 1;
inline constexpr std::uint32_t native_cell = first_own_flag << 2;    // its messages are native values
inline constexpr std::uint32_t forked_cell = first_own_flag << 3;    // a copy in a child process: refuses all use
inline constexpr std::uint32_t carrying_cell = first_own_flag << 4;  // its messages carry their senders' variables
inline constexpr std::uint32_t adopting_cell = first_own_flag << 5;  // ... which are in place while it handles them
inline constexpr std::uint32_t task_cell = first_own_flag << 6;      // it takes no messages
inline constexpr std::uint32_t sampled_cell = first_own_flag << 7;   // a trace shows some messages: see thread_locals.pxd
inline constexpr std::uint32_t counted_cell = first_own_flag << 8;   // `limits` is there, and only counts
// A sender of a native value to a cell with one of these takes the slow way.
inline constexpr std::uint32_t guarded_cell = limited | counted_cell | closed_cell | forked_cell;
// A sender of a Python object to a cell with one of these does, and sends many of them one by one, not as a chain.
inline constexpr std::uint32_t no_chain_cell = guarded_cell | native_cell | carrying_cell | task_cell;
inline constexpr std::uint32_t slow_cell = no_chain_cell | sampled_cell;

// The scheduler's view of an actor, and the state that dispatches keep between them. All of it belongs to the
// readiness owner, but for what is set before the cell is first scheduled.
struct ActorCell : Cell {
    using Cell::Cell;
    void* object{nullptr};       // the actor itself, once constructed; borrowed from the owner
    Envelope* in_work{nullptr};  // the message that the actor handles just now
    void* variables{nullptr};    // the actor's context variables while it does not run; owned
    void* overflow{nullptr};     // a bounded mailbox's policy, which lives for ever: see overflow.pyx
};

// A node for a message of the runtime's own, which must not fail: where memory has ended, and the reserve, too, this
// waits until other threads have freed some. They may need the interpreter for that.
inline Node* await_node(Cell* to, Context* context) noexcept {
    Node* node = context->nodes.take_reserved(to->spare);
    for (int tries = 0; __builtin_expect(node == nullptr, 0); ++tries) {
        if (tries == 60'000) {
            std::fputs("callboard: found no memory for a message of the runtime in a minute\n", stderr);
            std::abort();
        }
        PyThreadState* const interpreter = PyGILState_Check() ? PyEval_SaveThread() : nullptr;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        if (interpreter != nullptr) PyEval_RestoreThread(interpreter);
        node = context->nodes.take_reserved(to->spare);
    }
    return node;
}

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

// How long messages wait in a mailbox: one in sixteen has a time stamp, where monitoring counts the messages of mailboxes.
//
// Each thread that sends stamps about one in sixteen of its messages, at random distances, so that no pattern in them is
// met each time. A look at the clock for each message would cost more than the rest of monitoring. The stamp is in the
// message's node, so it is the time of this very message. It is written before the push, and read after the pop.
//
// A mailbox with times is one with limits: its senders go the slow way, and all write the field, be it 0. Others neither
// write nor read it.
inline constexpr std::uint32_t stamped_of = 16;

// The sender, before it pushes a message to a cell with limits.
inline void stamp(Node* node, Cell* to, Context* context) {
    if (to->times.load(relaxed) == nullptr) return;
    node->sent_at = context->stamps.takes(stamped_of) ? context->clock.now() : 0;
}

// The receiver, on its worker, when it takes a message of a cell with limits out.
inline void note_taken(Node* node, Cell* cell, Context* context) {
    ActorTimes* const times = cell->times.load(acquire);  // pairs with the store of the cell's own times
    if (times == nullptr || __builtin_expect(node->sent_at == 0, 1) || context->worker == nullptr) return;
    times->note_waited(context->index, context->clock.now() - node->sent_at);
}

// Pushes a message that has its room. True: the caller must wake the actor. Throws std::bad_alloc.
[[gnu::always_inline]] inline bool push(Cell* to, Context* context, Envelope envelope) {
    return to->tail.push(filled(context->nodes.take(to->spare), envelope));
}

// Whether the only difference to a plain cell is that its messages are counted, or are samples.
inline bool is_only_watched(const Cell* cell) {
    return (cell->flags.load(relaxed) & slow_cell & ~(counted_cell | sampled_cell)) == 0;
}

}  // namespace callboard
