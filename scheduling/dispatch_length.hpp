// The number of messages that a dispatch handles: the quantum, except when messages are slow or flood in.
//
// A dispatch begins no more messages when its time slice is over (elsewhere called a throughput deadline).
// Otherwise an actor whose messages take a tenth of a second would keep its worker for a whole quantum of them.
// Reading the clock after each message costs too much if messages are short. So each cell has a check interval:
// the number of messages between two readings. It is 1 for a cell that is new or slow, which also reads the clock
// when its dispatch begins; each quick stretch doubles it, up to 8. So if a quick actor becomes slow, this is
// noticed after 8 messages at most. A dispatch of one message, as in a ping-pong, never reads the clock. The clock
// is the coarse one: a time slice of 5 ms lasts 4 to 9 ms, at the kernel's usual ticks.
//
// A sender that is far ahead of its receiver fills the mailbox faster than equal dispatches empty it. Its nodes
// leave the caches, and each message costs several times as much. The flood is detected where this costs nothing:
// a thread in balance with its receivers finds spare nodes, but one that is ahead has to make new ones. A dispatch
// that made many nodes ends. Then the worker's dispatches exceed the quantum, for as long as that lets receivers
// catch up. No actor is held up by another; all are dispatched, for another length of time. (Pony mutes such
// senders, and needs rules against the deadlocks that this may cause.) A fixed length (Worker::exact) is kept.
//
// A dispatch may go past the quantum for a millisecond. In that time a Python actor of 0.4 us a message catches up
// with ten senders that ended early, and one of 2 us with two. Where a message costs more than that, the state of
// the caches does not matter, but the delay of other actors does.
#pragma once

#include <cassert>
#include <cstdint>

#include "callboard/core/clock.hpp"
#include "callboard/scheduling/cell.hpp"
#include "callboard/scheduling/context.hpp"
#include "callboard/scheduling/worker.hpp"

namespace callboard {

inline constexpr std::uint32_t most_needs = 64, long_dispatches = 64, most_stretch = 16;
inline constexpr std::int64_t longest_ns = 1'000'000;

inline constexpr std::uint32_t max_check_interval = 8, no_checks = 0xffffffff;

// Reads the clock before a dispatch's first message.
__attribute__((noinline)) inline void look_first(Cell* cell, Context* context) {
    Worker* const worker = context->worker;
    assert(cell->check_interval == 1);
    if (worker->time_slice_ns == 0) {
        cell->check_interval = no_checks;
        return;
    }
    context->dispatch_began = coarse_ns();
    worker->loop_time.store(context->dispatch_began, relaxed);
}

// The next limit of a dispatch that handled a check interval of messages: the same if its time is over.
__attribute__((noinline)) inline std::uint32_t look(Context* context, std::uint32_t handled) {
    Worker* const worker = context->worker;
    Cell* const cell = context->current;
    if (worker->time_slice_ns == 0) return worker->quantum;
    const std::int64_t now = coarse_ns(), before = worker->loop_time.load(relaxed);
    worker->loop_time.store(now, relaxed);
    if (context->dispatch_began == 0) context->dispatch_began = before;
    if (now - context->dispatch_began >= worker->time_slice_ns) {
        cell->check_interval = 1;
        return handled;
    }
    if (8 * (now - before) < worker->time_slice_ns) {
        if (cell->check_interval < max_check_interval) cell->check_interval *= 2;
    } else if (2 * (now - before) >= worker->time_slice_ns) {
        cell->check_interval = 1;
    }
    assert(handled < worker->quantum && cell->check_interval != 0);
    const std::uint32_t left = worker->quantum - handled;
    return handled + (cell->check_interval < left ? cell->check_interval : left);
}

// The first limit of a dispatch.
inline std::uint32_t begin_dispatch(Cell* cell, Context* context, std::uint32_t quantum) {
    assert(quantum != 0 && cell->check_interval != 0);
    context->dispatch_began = 0;
    if (__builtin_expect(cell->check_interval == 1, 0)) look_first(cell, context);
    return cell->check_interval < quantum ? cell->check_interval : quantum;
}

// The limit of a dispatch that came to it, or that needed the last of many nodes: the same, less or more.
// While receivers catch up, nodes from their free lists count as well: otherwise a sender would take all that
// they gave back, and a few new ones each time.
__attribute__((noinline)) inline std::uint32_t extended(
    Context* context, std::uint32_t handled, std::uint32_t limit) {
    auto& nodes = context->nodes;
    const std::uint32_t quantum = context->worker->quantum;
    if (handled < quantum && nodes.needs() < most_needs) return look(context, handled);
    assert(context->catching_up <= long_dispatches);
    const bool floods = nodes.needs() >= most_needs;
    if (floods && nodes.made() != 0) context->catching_up = long_dispatches;
    if (context->worker->exact) context->catching_up = 0;
    if (floods || context->catching_up == 0) nodes.clear_needs(context->catching_up != 0);
    if (context->catching_up == 0)
        return handled >= limit && handled < quantum ? look(context, handled) : limit;
    if (floods) return handled != 0 ? handled : limit;  // of 0, they were needed before this dispatch
    const std::int64_t now = monotonic_ns();
    if (limit <= quantum) {  // the first time in this dispatch
        --context->catching_up;
        context->past_quantum = now;
    } else if (now - context->past_quantum > longest_ns) {
        return limit;
    }
    return handled + (quantum < most_stretch ? quantum : most_stretch);
}

// The end of a dispatch that found no more messages. If it went past the quantum, that paid, and later
// dispatches may do so, too.
inline void end_dispatch(Context* context, std::uint32_t limit) {
    if (__builtin_expect(context->catching_up != 0, 0) && limit > context->worker->quantum)
        context->catching_up = long_dispatches;
}

// Whether a dispatch that handled `handled` messages may handle one more; its limit is begin_dispatch()'s at
// first. It stays in the caller's register: only extended() moves it.
inline bool goes_on(Context* context, std::uint32_t handled, std::uint32_t& limit) {
    if (__builtin_expect(handled < limit && context->nodes.needs() < most_needs, 1)) return true;
    limit = extended(context, handled, limit);
    return handled < limit;
}

}  // namespace callboard
