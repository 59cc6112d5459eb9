// How many counters there may be, where several partitions have them: as many as each needs, of all together.
//
// Space Saving's bound rests on one sum: C counters that are all above N / C would have counted more than N.
// Keys are divided among partitions, so one of them may have nothing but counts above that while another has smaller
// ones. It must not take such a count over, so it takes one counter too many, and who finds that, with a count
// of at most N / C, gives one up: the key that loses it came no more often. Two numbers are kept at 0 or above:
//
//   spare: counters that nobody has.
//   lost:  counts that ended with a counter, less those that keys began with in one that was nobody's.
//          So the counts of all and `lost` add up to N.
//
// If both are kept there, there is one to take over or to give up, as with one partition. What keeps them from it for a
// while is that partitions get unequal parts, as of two thousand keys of one great weight: then all counts may be
// above N / C, until N has grown. Meanwhile there are more counters, up to twice as many and a little in what was
// tried; at worst C log(N / C), as in Lossy Counting (Manku and Motwani 2002), which gives up those at most N / C
// just so. No answer is ever wrong by more than N / C.
#pragma once

#include <cstdint>

#include "callboard/core/atomics.hpp"

namespace callboard {

class Budget {
public:
    explicit Budget(std::uint32_t counters) : counters_(counters), spare_(counters) {}

    // So many elements will be counted. Returns the bound, which is right until more are. relaxed: a bound that
    // does not know of others' elements is lower.
    std::uint64_t count(std::uint64_t elements) { return (total_.fetch_add(elements, relaxed) + elements) / counters_; }
    std::uint64_t bound() const { return total_.load(relaxed) / counters_; }

    bool has_spare() const { return spare_.load(relaxed) > 0; }
    // Hints. Two that see this give up one each, and the next key takes the second one.
    bool is_short() const { return spare_.load(relaxed) < 0 || lost_.load(relaxed) < 0; }

    // One counter more, whose key begins with `count`.
    void take(std::uint64_t count) {
        spare_.fetch_sub(1, relaxed);
        if (count != 0) lost_.fetch_sub(static_cast<std::int64_t>(count), relaxed);
    }

    // One fewer, which ended with `count`.
    void give_up(std::uint64_t count) {
        spare_.fetch_add(1, relaxed);
        lost_.fetch_add(static_cast<std::int64_t>(count), relaxed);
    }

    // Before anything is counted: so many counters have so many of all elements.
    void load(std::uint64_t counters, std::uint64_t counts, std::uint64_t total) {
        spare_.fetch_sub(static_cast<std::int64_t>(counters), relaxed);
        lost_.store(static_cast<std::int64_t>(total - counts), relaxed);
        total_.store(total, relaxed);
    }

    std::int64_t lost() const { return lost_.load(relaxed); }

private:
    const std::uint32_t counters_;
    alignas(cache_line) Atomic<std::int64_t> spare_;
    Atomic<std::int64_t> lost_{0};
    alignas(cache_line) Atomic<std::uint64_t> total_{0};
};

}  // namespace callboard
