// A turn: how many messages a dispatch handles. The quantum, but for a flood.
//
// A sender that is far ahead of its receiver fills the mailbox faster than equal turns empty it; its
// nodes leave the caches, and each message costs several times as much. The flood is seen where it
// costs nothing to look: a thread in balance with its receivers finds spare nodes, one that is ahead
// has to make new ones. A dispatch that made many ends, and for a while the worker's dispatches take
// more than the quantum, so that the receivers catch up. Nobody is held up by another (Pony mutes such
// senders, and needs rules against the deadlocks that this may make): all actors get their turns, of
// another length. Where the length is a promise (Worker::exact), it is kept.
#pragma once

#include <cstdint>

#include "callboard/core/parker.hpp"
#include "callboard/scheduling/worker.hpp"

namespace callboard {

inline constexpr std::uint32_t most_fresh = 64, long_dispatches = 64;
inline constexpr std::int64_t longest_ns = 100'000;

// The limit of a dispatch that came to it, or that made the last of many nodes: the same, less or more.
__attribute__((noinline)) inline std::uint32_t extended(
    Context* context, std::uint32_t handled, std::uint32_t limit, std::uint32_t quantum) {
    const bool floods = context->nodes.fresh() >= most_fresh;
    if (floods) context->nodes.clear_fresh();
    if (context->worker->exact) return limit;
    if (floods) {
        context->catching_up = long_dispatches;
        return handled != 0 ? handled : limit;  // of 0, the nodes were made before this dispatch
    }
    if (context->catching_up == 0) return limit;
    const std::int64_t now = Parker::now();
    if (limit <= quantum) {  // the first time in this dispatch
        --context->catching_up;
        context->past_quantum = now;
    } else if (now - context->past_quantum > longest_ns) {
        return limit;
    }
    return handled + quantum;
}

// Whether a dispatch that handled `handled` messages may handle one more; its limit is the quantum at
// first. It stays in the caller's register: only extended() moves it.
inline bool goes_on(
    Context* context, std::uint32_t handled, std::uint32_t& limit, std::uint32_t quantum) {
    if (__builtin_expect(handled < limit && context->nodes.fresh() < most_fresh, 1)) return true;
    limit = extended(context, handled, limit, quantum);
    return handled < limit;
}

}  // namespace callboard
