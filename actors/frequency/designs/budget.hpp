// The counters that partitions share: each takes as many as it needs, and together they have at most C.
//
// Space Saving's bound rests on one sum: C counters that are all above N / C would have counted more than N. So where
// keys are divided among partitions, the counter that is taken over must still be the least of all, and not
// just of the partition that needs one. Two numbers are kept for that:
//
//   level: no counter of any partition is below it, or ever will be. It only rises.
//   debt:  counters beyond C.
//
// A partition takes over counters as long as its least one is at the level. One that has none there, but needs one,
// runs into debt: the key begins with the level as its error, in a counter more. A partition that has one at the
// level gives it up for that. So the counts of all, S, exceed N by no more than what the keys of open debts began
// with, each with a level that was: S <= N + debt * level. And S >= (C + debt) * level. Hence level <= N / C at all
// times, and so is every error. When the debt is paid, there are at most C; that is as soon as others have looked
// at their counters. The first C keys begin at 0, before anything is taken over.
//
// To raise the level, all must have said that they have nothing below. A partition that has said so takes it back
// before it begins a key below that. Both are done under one lock, once for each level, and for each debt.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <mutex>
#include <vector>

#include "callboard/core/atomics.hpp"

namespace callboard {

class Budget {
public:
    Budget(std::uint32_t counters, std::size_t partitions) : most_debt_(counters / 16), floors_(partitions, 0) {
        spare_.store(counters, relaxed);
    }

    // Any thread, here and below. relaxed: the numbers say nothing of what a partition has in memory. A level that
    // was is a lower one.
    std::uint64_t level() const { return level_.load(relaxed); }
    bool has_debt() const { return debt() > 0; }
    bool has_much_debt() const { return debt() > most_debt_; }
    std::int64_t debt() const { return -spare_.load(relaxed); }

    // Takes an unused counter. Once this is false it stays so.
    bool try_take() {
        std::int64_t spare = spare_.load(relaxed);
        while (spare > 0)
            if (spare_.compare_exchange_weak(spare, spare - 1, relaxed, relaxed)) return true;
        return false;
    }

    // The owner of a partition for which try_take() failed: it has no counter below `least`. Returns the level.
    std::uint64_t raise(std::size_t partition, std::uint64_t least) {
        const std::lock_guard<std::mutex> guard(lock_);
        assert(partition < floors_.size());
        floors_[partition] = least;
        assert(*std::min_element(floors_.begin(), floors_.end()) >= level() && "the level only rises");
        level_.store(*std::min_element(floors_.begin(), floors_.end()), relaxed);
        return level();
    }

    // The same: it has one counter more than there may be. Returns what the counter's key begins with.
    std::uint64_t overdraw(std::size_t partition) {
        const std::lock_guard<std::mutex> guard(lock_);
        assert(partition < floors_.size() && spare_.load(relaxed) <= 0 && "a partition overdraws if no counter is left");
        floors_[partition] = std::min(floors_[partition], level() + 1);
        spare_.fetch_sub(1, relaxed);
        return level();
    }

    // The same: it gives up a counter that is at the level, if this is true.
    bool try_repay() {
        std::int64_t spare = spare_.load(relaxed);
        while (spare < 0)
            if (spare_.compare_exchange_weak(spare, spare + 1, relaxed, relaxed)) return true;
        return false;
    }

    // Before anything is counted: there are `counters` counters, none of them below `level`.
    void load(std::uint64_t counters, std::uint64_t level) {
        assert(spare_.load(relaxed) >= static_cast<std::int64_t>(counters) && "there is room for them");
        spare_.fetch_sub(static_cast<std::int64_t>(counters), relaxed);
        for (std::size_t at = 0; at < floors_.size(); ++at) raise(at, level);
    }

private:
    const std::int64_t most_debt_;
    alignas(cache_line) Atomic<std::int64_t> spare_{0};
    Atomic<std::uint64_t> level_{0};
    alignas(cache_line) std::mutex lock_;
    std::vector<std::uint64_t> floors_;  // under the lock
};

}  // namespace callboard
