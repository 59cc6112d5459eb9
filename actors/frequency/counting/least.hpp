// A priority queue of counters, the least count first, for counts that only grow.
//
// The least count of a summary never falls: a key that takes a counter over begins above it. For such a queue a
// radix heap is enough (Ahuja, Mehlhorn, Orlin and Tarjan 1990): slots lie in buckets by the highest bit in which
// their count differs from the least one. When the lowest bucket is empty, the next one is divided among those
// below it. A slot sinks through few buckets, whatever the weights.
//
// The queue is lazy: a count grows without its knowledge. A slot that comes up with another count than it was queued
// by is queued again. So counting an element that has a counter costs nothing here, and each such move is paid for by
// a count that grew since the last one.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace callboard {

class LeastQueue {
public:
    LeastQueue() {
        for (auto& first : firsts_) first = none;
    }

    // For `slots` slots. Throws std::bad_alloc; nothing else here does.
    void make_room(std::size_t slots) {
        if (slots > next_.size()) next_.resize(slots);
    }

    // A slot that is not in the queue and for which there is room, with a count of at least the least: least().
    void push(std::uint32_t slot, std::uint64_t count) {
        assert(slot < next_.size() && "there is room");
        assert(count >= least_ && "no count is below the least");
        std::uint32_t& first = firsts_[bucket_of(count)];
        next_[slot] = first;
        first = slot;
    }

    // Takes out a slot with the least count of all; the queue is not empty. `count_of` returns a slot's count now.
    template <class CountOf>
    std::uint32_t pop(const CountOf& count_of) {
        for (;;) {
            settle(count_of);
            const std::uint32_t slot = firsts_[0];
            firsts_[0] = next_[slot];
            const std::uint64_t count = count_of(slot);
            assert(count >= least_ && "counts only grow");
            if (count == least_) return slot;
            push(slot, count);
        }
    }

    // Calls `next` and `after` with the two slots that come up next, unless their counts have grown.
    template <class Next, class After>
    void look_ahead(const Next& next, const After& after) const {
        const std::uint32_t first = firsts_[0];
        if (first == none) return;
        next(first);
        if (next_[first] != none) after(next_[first]);
    }

    std::uint64_t least() const { return least_; }

    // Before a slot with a lower count than least() is pushed: all are queued anew.
    template <class CountOf>
    void lower(std::uint64_t least, const CountOf& count_of) {
        assert(least <= least_);
        std::uint32_t all = none;
        for (auto& first : firsts_) {
            while (first != none) {
                const auto slot = first;
                first = next_[slot];
                next_[slot] = all;
                all = slot;
            }
        }
        least_ = least;
        while (all != none) {
            const auto slot = all;
            all = next_[slot];
            push(slot, count_of(slot));
        }
    }

private:
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    unsigned bucket_of(std::uint64_t count) const {
        return count == least_ ? 0 : 64 - static_cast<unsigned>(__builtin_clzll(count ^ least_));
    }

    // Brings the slots with the least queued count into the lowest bucket; the queue is not empty.
    template <class CountOf>
    void settle(const CountOf& count_of) {
        while (firsts_[0] == none) {
            unsigned i = 1;
            for (; firsts_[i] == none; ++i) assert(i < 64 && "the queue is not empty");
            // The counts of this bucket end here. A slot that has grown beyond it says nothing about the least.
            const std::uint64_t end = i == 64 ? ~std::uint64_t{0} : (least_ | ((std::uint64_t{1} << i) - 1));
            std::uint64_t least = end;
            for (auto slot = firsts_[i]; slot != none; slot = next_[slot]) least = std::min(least, count_of(slot));
            assert(least > least_ && "the least count only grows");
            auto taken = firsts_[i];
            firsts_[i] = none;
            least_ = least;  // if all have grown beyond it, `end` is below them, too
            while (taken != none) {
                const auto slot = taken;
                taken = next_[slot];
                push(slot, count_of(slot));
            }
        }
    }

    std::uint32_t firsts_[65];         // of the buckets, each a list
    std::vector<std::uint32_t> next_;  // by slots
    std::uint64_t least_{0};
};

}  // namespace callboard
