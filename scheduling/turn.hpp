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

class Turn {
public:
    void begin(Context* context, std::uint32_t quantum) {
        context_ = context;
        quantum_ = limit_ = quantum;
        context->nodes.clear_fresh();
    }

    // How many messages more than those `handled` the dispatch may take as it stands.
    std::uint32_t left(std::uint32_t handled) const { return limit_ - handled; }

    // Those `handled` are counted: the next count is from 0.
    void count_from_zero(std::uint32_t handled) { limit_ -= handled; }

    // Whether the dispatch may handle one more message than those `handled`.
    bool goes_on(std::uint32_t handled) {
        return __builtin_expect(
                   handled < limit_ && context_->nodes.fresh() < most_fresh, 1)
               || goes_on_slowly(handled);
    }

private:
    static constexpr std::uint32_t most_fresh = 64, long_dispatches = 64;
    static constexpr std::int64_t longest_ns = 100'000;

    __attribute__((noinline)) bool goes_on_slowly(std::uint32_t handled) {
        if (context_->worker->exact) return handled < limit_;
        if (context_->nodes.fresh() >= most_fresh) {
            context_->catching_up = long_dispatches;
            return false;
        }
        if (context_->catching_up == 0) return false;
        const std::int64_t now = Parker::now();
        if (began_ == 0) {
            --context_->catching_up;
            began_ = now;
        } else if (now - began_ > longest_ns) {
            return false;
        }
        limit_ = handled + quantum_;
        return true;
    }

    Context* context_{nullptr};
    std::uint32_t quantum_{0}, limit_{0};
    std::int64_t began_{0};  // of a long one, once it is past the quantum
};

}  // namespace callboard
