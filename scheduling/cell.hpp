// A cell: an actor as the scheduler sees it, with a mailbox, a state, an affinity (the worker to wake) and a function.
//
// The state machine. A cell is in one of these states. Parentheses have the bits that say so.
//   ready    in exactly one ready set, wake-up inbox or token queue (tail's idle bit 0, not waiting)
//   running  dispatched by one thread                               (idle bit 0, not waiting)
//   idle     nowhere: nothing to do                                 (idle bit 1, not waiting)
//   waiting  nowhere: in the middle of a message, or backing off    (idle bit 0, waiting bit 1)
// "Notified while running" is not a separate state: a message that arrives while the actor runs moves
// the tail, and so keeps the actor from going idle.
//
// The owner of a cell's readiness (one thread at a time) may touch its consumer's fields. Rules:
//   1. A new cell's readiness belongs to its creator.
//   2. It passes on by put() into a ready set, by an inbox, by the token's delegation, by a dispatch, or
//      by a theft from a ready set or inbox. Each of these orders the new owner after the old one.
//   3. Only its owner gives it up, by try_idle() or try_wait(). After that it touches none of the
//      consumer's fields.
//   4. It is taken out of idle only by the operation that clears the idle bit: MpscTail::push() or
//      signal() that answers true. One clears it; the others see it cleared.
//   5. It is taken out of waiting only by end_wait() that answers true. User messages never do.
//   6. A system message is pushed to the system stack first; then its sender tries rule 4, then 5.
// Why no wake-up is lost. Idle: try_idle() is one compare-and-swap that expects the tail to be the head,
// without bits. A message moves the tail, and a system message sets the signal bit. So each either makes
// try_idle() fail, or comes after it and finds the idle bit. Waiting: try_wait() writes `waiting` and
// then looks at the system stack; a sender pushes to the stack and then writes `waiting`. Both writes are
// read-modify-writes, so the later one reads from the earlier one: either the actor sees the message, or
// the sender sees that the actor waits.
#pragma once

#include <cassert>
#include <cstdint>

#include "callboard/core/memory/node.hpp"
#include "callboard/core/memory/stack.hpp"
#include "callboard/core/monitoring/actor_times.hpp"
#include "callboard/core/monitoring/records.hpp"
#include "callboard/mailbox/limits.hpp"
#include "callboard/mailbox/mpsc.hpp"
#include "callboard/scheduling/forward.hpp"

namespace callboard {

// Flags of a cell, set before it is first scheduled.
inline constexpr std::uint32_t python_cell = 1;      // its dispatch needs the interpreter
inline constexpr std::uint32_t wants_token = 2;      // ... and the token
inline constexpr std::uint32_t dedicated_cell = 4;   // has a dedicated worker
inline constexpr std::uint32_t unpinned_cell = 8;    // no policy chose its affinity: see stealing.hpp
inline constexpr std::uint32_t recorded_cell = 16;   // monitoring notes its dispatches
inline constexpr std::uint32_t own_times_cell = 32;  // `times` are its own, and end with it
// The flags from here on belong to the actor in the cell, which may set them at any time.
inline constexpr std::uint32_t first_own_flag = 64;

// A derived type, such as ActorCell, has the fields of the actor itself.
struct Cell {
    Cell(Run run, void* owner, std::uint32_t flags) : Cell(new Node, run, owner, flags) {}
    Cell(const Cell&) = delete;

    // --- the senders' ---------------------------------------------------------------------------
    alignas(cache_line) MpscTail tail;
    FreeList spare;

    // --- read by all, rarely written ------------------------------------------------------------
    alignas(cache_line) Atomic<Worker*> affinity{nullptr};
    Stack<Node> system;  // messages that overtake those of users
    Atomic<std::uint32_t> waiting{0};
    Atomic<std::uint32_t> flags;
    std::uint32_t weight{0};  // given at spawn, for priority policies
    std::uint32_t check_interval{1};  // messages between readings of the clock; the runner's: see dispatch_length.hpp
    Run run;
    void* owner;              // the Python object that stands for this actor; borrowed
    Limits* limits{nullptr};

    // --- the readiness owner's ------------------------------------------------------------------
    alignas(cache_line) MpscHead head;
    Cell* next{nullptr};                 // in a ready set, an inbox, the token's queue
    std::uint64_t number{0};             // its name in monitoring records
    std::int64_t created{0};             // monotonic ns; 0 where monitoring is off
    Counter messages;                    // consumed
    Counter dispatches;                  // the one in work included
    Counter busy_ns;                     // measured when monitoring or a policy asks for it
    std::uint64_t stamp{0};              // a priority policy's own (age, deadline)
    Atomic<ActorTimes*> times{nullptr};  // what monitoring adds its times to; null: nothing
    Atomic<Worker*> ready_on{nullptr};   // whose ready set it is in; null when running or nowhere

    bool has(std::uint32_t flag) const { return flags.load(relaxed) & flag; }
    void set(std::uint32_t flag) { flags.fetch_or(flag, relaxed); }
    void clear(std::uint32_t flag) { flags.fetch_and(~flag, relaxed); }

    // Any thread. Pushes a system message; true: the caller now owns the cell's readiness.
    [[nodiscard]] bool push_system(Node* node) {
        assert(node != nullptr);
        system.push(node);
        return tail.signal() || end_wait();
    }

    // Any thread. Takes the cell out of waiting; true: the caller owns its readiness.
    [[nodiscard]] bool end_wait() { return waiting.fetch_and(~waiting_bit, acq_rel) & waiting_bit; }

    // The owner. All system messages, oldest first.
    Node* take_system() {
        tail.clear_signal();  // first: a sender that pushes after the exchange signals after it
        return oldest_first(system.take_all());
    }

    bool has_system() const { return !system.seems_empty(); }

    // The owner. True: the cell is idle and has no owner; do not touch it. False: there is work.
    [[nodiscard]] bool try_idle() {
        assert(ready_on.load(relaxed) == nullptr && "a cell that runs is in no ready set (rule 1)");
        assert(!tail.is_idle() && "an idle cell has given its readiness up (rule 3)");
        if (head.try_idle(tail)) return true;
        if (!tail.is_signalled() || has_system()) return false;
        // A signal without a message. The message was taken between its sender's push and signal, or
        // while a push had the signal in hand. Otherwise it would stay set, and the cell would stay
        // ready for ever. Cleared first, as in take_system().
        tail.clear_signal();
        return !has_system() && head.try_idle(tail);
    }

    // The owner, which keeps the cell alive. True: the cell waits and has no owner, until a system
    // message wakes it. False: a system message is there, and the caller still owns the readiness.
    [[nodiscard]] bool try_wait() {
        assert(ready_on.load(relaxed) == nullptr && "a cell that runs is in no ready set (rule 1)");
        assert(!is_waiting() && "a waiting cell has given its readiness up (rule 3)");
        waiting.fetch_or(waiting_bit, acq_rel);
        if (system.seems_empty()) return true;
        return !end_wait();
    }

    bool is_waiting() const { return waiting.load(relaxed) & waiting_bit; }

    ~Cell() {
        FreeList::free_chain(system.take_all());
        delete limits;
        if (has(own_times_cell)) delete times.load(relaxed);
    }

private:
    static constexpr std::uint32_t waiting_bit = 1;

    Cell(Node* dummy, Run run, void* owner, std::uint32_t flags)
        : tail(dummy, false), flags(flags), run(run), owner(owner), head(dummy) {}
};

}  // namespace callboard
