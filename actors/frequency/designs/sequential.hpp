// A summary of one stream. The caller ensures that one thread at a time counts or asks.
#pragma once

#include <algorithm>
#include <cassert>

#include "callboard/core/one_at_a_time.hpp"
#include "callboard/frequency/counting/counters.hpp"
#include "callboard/frequency/designs/summary.hpp"

namespace callboard {

template <class Keys>
class Sequential final : public Summary<Keys>, OneAtATime<Owner> {
public:
    using typename Summary<Keys>::Probe;
    using typename Summary<Keys>::Row;
    using typename Summary<Keys>::Answer;
    using typename Summary<Keys>::Estimate;

    Sequential(std::uint32_t capacity, std::uint64_t seed) : counters_(capacity, seed) {}

    void add(unsigned, const Probe* keys, const std::uint64_t* weights, std::size_t count) override {
        const Alone<Owner> alone(*this);
        if (weights == nullptr) return counters_.add_array(keys, count);
        for (std::size_t i = 0; i < count; ++i) counters_.add(keys[i], weights[i]);
    }

    Answer ask(std::size_t most, double support) override {
        const Alone<Owner> alone(*this);
        const std::uint64_t bar = part_of(support, counters_.total());
        const auto slots = bar == 0 ? counters_.top(most) : counters_.above(bar);
        Answer answer{{}, counters_.total(), counters_.unseen()};
        answer.rows.reserve(std::min(most, slots.size()));
        for (auto slot : slots) {
            if (answer.rows.size() == most) break;
            answer.rows.push_back(row_of(slot));
        }
        return answer;
    }

    Estimate estimate(const Probe& key) override {
        const Alone<Owner> alone(*this);
        const std::uint32_t slot = counters_.find(key);
        if (slot != SlotIndex::none) return {counters_.count_of(slot), counters_.error_of(slot), true};
        return {counters_.unseen(), counters_.unseen(), false};
    }

    std::uint64_t total() override { return counters_.total(); }
    std::uint32_t size() override { return counters_.size(); }

    void load(const Answer& state) override {
        assert(counters_.total() == 0 && "before anything is counted");
        for (const Row& row : state.rows) {
            const Probe key = Keys::probe_of(row.key);
            counters_.put(key, counters_.hash(key), row.count, row.error);
        }
        counters_.set_total(state.total);
        counters_.set_unseen(state.unseen);
    }

private:
    Row row_of(std::uint32_t slot) const {
        return {Keys::copy(counters_.key_of(slot)), counters_.count_of(slot), counters_.error_of(slot)};
    }

    Counters<Keys> counters_;
};

}  // namespace callboard
