// How a cell becomes ready, is dispatched, and is charged for it.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>

#include "callboard/core/clock.hpp"
#include "callboard/core/monitoring/records.hpp"
#include "callboard/core/threads/parker.hpp"
#include "callboard/mailbox/limits.hpp"
#include "callboard/scheduling/cell.hpp"
#include "callboard/scheduling/context.hpp"
#include "callboard/core/monitoring/recorder.hpp"
#include "callboard/scheduling/worker.hpp"

namespace callboard {

// For a thread that sends to a full mailbox, on a worker only if that has no other ready cell. Waits until there may
// be room, or until a cell was announced or delegated to the worker, `nanoseconds` at most.
inline void wait_for_room(Limits& limits, Context* context, std::int64_t nanoseconds) {
    Worker* const worker = context->worker;
    if (worker == nullptr) {
        Parker parker;
        if (!context->spinner.wait_until([&] { return limits.has_room(); }, worker_patience))
            limits.wait_for_room(parker, nanoseconds);
        return;
    }
    auto& token = worker->team->token;
    if (context->spinner.wait_until([&] {
            return limits.has_room() || !worker->inbox.is_empty() ||
                   (worker->has_token && token.has_pending());
        }, worker_patience))
        return;
    // The worker keeps the token. If it released the token here, it would return into the middle of a Python
    // handler, and contend for the interpreter with the next owner. So threads that delegate must wake it.
    if (worker->has_token && !token.try_sleep(worker->parker)) return;
    limits.wait_for_room(worker->parker, nanoseconds);
    if (worker->has_token) token.stay_awake();
}

// Time is measured from the end of one dispatch to the end of the next: one reading of the clock for each, and
// none at all unless asked for. So every dispatch ends with account() or charge(), on the worker's thread, and
// before it gives up the readiness.
inline std::int64_t charge_now(Cell* cell, Worker* worker, std::int64_t now) {
    const std::int64_t spent = now - worker->started;
    worker->started = now;
    cell->busy_ns.add(static_cast<std::uint64_t>(spent));
    worker->busy_ns.add(static_cast<std::uint64_t>(spent));
    return spent;
}

__attribute__((noinline)) inline void record(Cell* cell, Context* context, std::uint64_t messages) {
    Worker* const worker = context->worker;
    const std::int64_t now = std::max(context->clock.now(), worker->started);  // two clocks, nanoseconds apart
    const std::int64_t spent = charge_now(cell, worker, now);
    ActorTimes* const times = cell->times.load(acquire);  // pairs with the store in Handle._own_times()
    if (times != nullptr) times->note_handled(worker->index, spent, messages);
    if (worker->recorder == nullptr || !worker->recorder->wants_record()) return;
    worker->recorder->note(now, spent, messages);
    const std::int64_t queue = cell->limits != nullptr ? cell->limits->count() : -1;
    worker->recorder->note_actor(cell->dispatches.get(), cell->created, queue);
}

// Ends a dispatch, or a part of one, that handled no message.
inline void charge(Cell* cell, Context* context) {
    if (__builtin_expect(context->worker->timed, 0)) record(cell, context, 0);
}

// Ends a dispatch, or a part of one, that handled `messages`.
inline void account(Cell* cell, Context* context, std::uint64_t messages) {
    cell->messages.add(messages);
    context->worker->handled.add(messages);
    if (__builtin_expect(context->worker->timed, 0)) record(cell, context, messages);
}

// make_ready() for a cell whose affinity is another worker. If that worker is suspended, its stand-in runs the cell.
__attribute__((noinline)) inline void make_ready_away(Cell* cell, Context* context, Worker* affinity) {
    Worker* const here = context->worker;
    if (cell->has(unpinned_cell) && here != nullptr && here->steals && here->team == affinity->team) {
        // A woken cell runs where its waker runs, so actors that talk to each other get together.
        cell->affinity.store(here, relaxed);
        here->put(cell);
        return;
    }
    if (cell->has(wants_token)) {
        // The thread that runs Python takes Python cells as they come, whatever their affinity.
        if (here != nullptr && here->has_token && here->team == affinity->team) {
            here->put(cell);
            return;
        }
        if (affinity->team->token.delegate_if_owned(cell)) return;
    }
    Worker* const worker = affinity->in_charge();
    if (worker == here) here->put(cell);
    else worker->wake(cell);
}

// The caller, on the thread of `context`, has the readiness of `cell` and gives it to a worker.
inline void make_ready(Cell* cell, Context* context) {
    assert(cell->ready_on.load(relaxed) == nullptr && "its readiness is the caller's (rule 2)");
    assert(!cell->tail.is_idle() && "a ready cell is not idle");
    Worker* const affinity = cell->affinity.load(relaxed);
    assert(affinity != nullptr);
    if (__builtin_expect(affinity == context->worker, 1)) affinity->put(cell);
    else make_ready_away(cell, context, affinity);
}

// Reads the worker's clock between two dispatches: after each one if they take long, else after several.
__attribute__((noinline)) inline void look_at_clock(Worker* worker) {
    const std::int64_t now = coarse_ns();
    const bool quick = now - worker->loop_time.load(relaxed) < 1'000'000;
    worker->look_mask = quick ? (2 * worker->look_mask + 1) & 7 : 0;
    worker->loop_time.store(now, relaxed);
}

__attribute__((noinline)) inline Outcome run_recorded(Cell* cell, Context* context) {
    Worker* const worker = context->worker;
    const std::uint64_t number = cell->has(recorded_cell) ? cell->number : 0;
    worker->recorder->begin(number, worker->started);
    const Outcome outcome = cell->run(cell, context, worker->quantum);
    worker->recorder->end(outcome == Outcome::more);
    return outcome;
}

// Dispatches `cell`, which was fetched; no other code does. `outer` is the cell whose dispatch this is nested in, or
// null. If work is left, the cell is ready again, on its new worker if it was moved during the dispatch.
inline void dispatch(Cell* cell, Context* context, Cell* outer) {
    Worker* const worker = context->worker;
    assert(cell != outer && cell->ready_on.load(relaxed) == nullptr && "a cell that runs is in no ready set (rule 1)");
    worker->current.store(cell->number, relaxed);
    context->current = cell;
    cell->dispatches.add(1);
    const Outcome outcome = __builtin_expect(worker->recorder != nullptr, 0)
                                ? run_recorded(cell, context)
                                : cell->run(cell, context, worker->quantum);
    if (outcome == Outcome::more) make_ready(cell, context);
    context->current = outer;
    worker->dispatches.add(1);
    if ((worker->dispatches.get() & worker->look_mask) == 0) look_at_clock(worker);
    worker->current.store(outer != nullptr ? outer->number : 0, relaxed);
}

}  // namespace callboard
