// Lossy Counting by streams that cooperate: Manku and Motwani 2002, section 4.2, in the framework of Das et al. 2009,
// section 4.4.
//
// Elements come in rounds of `width`, which is 1 / epsilon rounded up. A key gets a counter when it comes: (f,
// delta). f counts it from then on. delta is the number of rounds that are over, so the most that the key may have
// come before. At the end of a round, counters with f + delta <= rounds are removed, bucket by bucket from the
// least frequent one on. Let N be the number of elements, weights included. While no thread counts:
//   1. A counter's `count` is f + delta and its `error` is delta. Every count is at least the key's true one, and
//      at most `error` above it, which is at most N / width.
//   2. A key without a counter came at most `unseen` times, the number of rounds that are over, at most N / width.
//   3. The number of counters varies. There are at most about width * log(N / width) of them (their theorem 4.2).
//      To these add those that came since the last round ended, and those of which a thread had an increment in
//      hand then. The counts do not add up to N, because removed counters are missing.
// A stream announces up to a thousand elements before it counts them, and ends the rounds that they complete
// afterwards. So elements of a round that is over may be counted in the next one. That adds no error: the end of a
// round is announced before counters are removed, and delta is read when the key is in the search structure. So a
// key that comes back after a removal has a delta with that round in it.
//
// When memory fails, some counters may stay for a round longer. The rounds then include the elements that were not
// counted; the total does not.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <new>

#include "callboard/core/atomics.hpp"
#include "callboard/frequency/designs/cooperation.hpp"

namespace callboard {

template <class Keys>
class CooperativeLossy final : public Cooperation<Keys> {
    using Base = Cooperation<Keys>;

public:
    using typename Summary<Keys>::Probe;
    using typename Summary<Keys>::Answer;
    using typename Summary<Keys>::Row;

    // `throttle` as for Cooperative.
    CooperativeLossy(std::uint64_t width, std::uint64_t seed, unsigned streams, std::uint32_t throttle)
        : Base(std::numeric_limits<std::int64_t>::max(), 4 * width, seed, streams, throttle, true), width_(width) {}

    void add(unsigned stream, const Probe* keys, const std::uint64_t* weights, std::size_t count) override {
        while (count != 0) {
            const std::size_t many = std::min<std::size_t>(count, Gathering<Keys>::most);
            std::uint64_t weight = many;
            if (weights != nullptr) {
                weight = 0;
                for (std::size_t i = 0; i < many; ++i) weight += weights[i];
            }
            const std::uint64_t before = seen_.fetch_add(weight, relaxed);
            Base::add(stream, keys, weights, many);
            if (before / width_ != (before + weight) / width_) end_round(stream, (before + weight) / width_);
            keys += many;
            if (weights != nullptr) weights += many;
            count -= many;
        }
    }

    void load(const Answer& state) override {
        this->load_rows(state.rows);
        this->loaded_ = state.total;
        seen_.store(state.total, relaxed);  // before there are threads
        rounds_.store(std::max(state.unseen, state.total / width_), relaxed);
    }

private:
    void end_round(unsigned stream, std::uint64_t round) {
        std::uint64_t rounds = rounds_.load(relaxed);
        // Release pairs with missed() and unseen().
        while (rounds < round && !rounds_.compare_exchange_weak(rounds, round, release, relaxed)) {
        }
        typename Base::Stream& own = this->streams_[stream];
        try {
            const typename Base::Inside inside(*this, own);
            this->summary_.trim(own, round, this->elements_);
        } catch (const std::bad_alloc&) {
        }
    }

    // Acquire pairs with end_round().
    std::uint64_t missed() const override { return rounds_.load(acquire); }
    std::uint64_t unseen() override { return rounds_.load(acquire); }
    std::uint64_t upper(std::uint64_t frequency, std::uint64_t error) const override { return frequency + error; }
    std::uint64_t frequency_of(const Row& row) const override { return row.count - row.error; }

    const std::uint64_t width_;
    alignas(cache_line) Atomic<std::uint64_t> seen_{0};  // announced
    alignas(cache_line) Atomic<std::uint64_t> rounds_{0};                // that are over
};

}  // namespace callboard
