// Which counter is the least: a queue of slots by counts that only grow.
//
// The least count of a summary never falls: whoever replaces a counter begins above it. For such a queue a
// radix heap is enough (Ahuja, Mehlhorn, Orlin and Tarjan 1990): slots lie in buckets by the highest bit in
// which their count differs from the least one, and only when the lowest bucket is empty is the next one
// divided among those below it. A slot sinks through few buckets, whatever the weights.
//
// It is lazy besides: a count grows without the queue's knowledge, and a slot that comes up with a count
// other than the one that it was queued by is queued again. So to count an element that is there costs nothing
// here; each such move is paid for by a count that grew since the last.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace callboard {

class LeastQueue {
public:
    // A new slot, with a count of at least the least.
    void push(std::uint32_t slot, std::uint64_t count) { buckets_[bucket_of(count)].push_back(slot); }

    // Takes back the push just made.
    void undo_push(std::uint64_t count) { buckets_[bucket_of(count)].pop_back(); }

    // Takes a slot with the least count of all out of the queue; there is one. `count_of` says a slot's count now.
    template <class CountOf>
    std::uint32_t pop(const CountOf& count_of) {
        for (;;) {
            settle(count_of);
            auto& lowest = buckets_[0];
            const std::uint32_t slot = lowest.back();
            lowest.pop_back();
            const std::uint64_t count = count_of(slot);
            if (count == least_) return slot;
            push(slot, count);
        }
    }

    void clear() {
        for (auto& bucket : buckets_) bucket.clear();
        least_ = 0;
    }

private:
    unsigned bucket_of(std::uint64_t count) const {
        return count == least_ ? 0 : 64 - static_cast<unsigned>(__builtin_clzll(count ^ least_));
    }

    // Brings slots of the least queued count into the lowest bucket.
    template <class CountOf>
    void settle(const CountOf& count_of) {
        while (buckets_[0].empty()) {
            unsigned i = 1;
            while (buckets_[i].empty()) ++i;
            // What this bucket is for ends here. Who has grown beyond it says nothing of the least.
            const std::uint64_t end = i == 64 ? ~std::uint64_t{0} : (least_ | ((std::uint64_t{1} << i) - 1));
            std::uint64_t least = end;
            for (auto slot : buckets_[i]) least = std::min(least, count_of(slot));
            taken_.swap(buckets_[i]);
            if (least_ < least) least_ = least;  // if all have grown beyond it, `end` is below them, too
            for (auto slot : taken_) push(slot, count_of(slot));
            taken_.clear();
        }
    }

    std::vector<std::uint32_t> buckets_[65], taken_;
    std::uint64_t least_{0};
};

}  // namespace callboard
