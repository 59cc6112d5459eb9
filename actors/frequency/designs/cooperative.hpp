// Space Saving by streams that cooperate: Das et al. 2009, section 4.
//
// The promises of summary.hpp hold; stream_summary.hpp says why. cooperation.hpp says which counts queries see
// while streams count. While nobody counts, the counts add up to the total.
#pragma once

#include "callboard/frequency/designs/cooperation.hpp"

namespace callboard {

template <class Keys>
class Cooperative : public Cooperation<Keys> {
public:
    using typename Summary<Keys>::Answer;

    // `throttle` is the paper's rho of section 4.3.3: a stream that joins a longer queue rests a little. 0: never.
    // Equal keys of one call are added up first (gathering.hpp) unless it is said that they are not.
    Cooperative(std::uint32_t capacity, std::uint64_t seed, unsigned streams, std::uint32_t throttle,
                bool gathers = true)
        : Cooperation<Keys>(capacity, capacity, seed, streams, throttle, gathers), capacity_(capacity) {}

    void load(const Answer& state) override {
        this->load_rows(state.rows);
        this->loaded_ = state.total;
        least_unseen_ = state.unseen;
        this->summary_.begin_with(state.unseen);
    }

private:
    // A key without a counter lost it to a count that was the least, or never had one.
    std::uint64_t unseen() override {
        return this->summary_.size() < capacity_ ? least_unseen_ : this->summary_.least();
    }
    std::uint64_t missed() const override { return least_unseen_; }

    const std::uint32_t capacity_;
    std::uint64_t least_unseen_{0};  // of what was loaded
};

}  // namespace callboard
