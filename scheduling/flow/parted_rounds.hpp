// The rounds of a stage whose outputs leave in parts, because a row gives more than should be in memory at once.
//
// Work::process gives the first part of such a round, and sets RowCounts::rest; Work::go_on gives the next. A part passes
// the stages behind on the lane that made it, as plain calls (Stage::take_part). So these stages must have no other
// round: all earlier rounds must have left the flow. Until then the round waits here with its first part, and no lane
// with it. The flow tells the stage when the round's turn has come.
#pragma once

#include <cassert>
#include <cstdint>
#include <mutex>
#include <vector>

#include "callboard/core/atomics.hpp"

namespace callboard {

struct PartedRound {
    std::int64_t serial;
    void* part;  // made, and not handed on
    void* rest;  // what Work::go_on makes the next part of
};

class PartedRounds {
public:
    // Any thread. The rounds that are here, or that a lane has in work.
    bool holds() const { return held_.load(acquire) != 0; }

    // Those that can go on: 0 or 1. Sequentially consistent, for the rules of pool.hpp.
    std::int64_t waiting() const { return turn_.load(seq_cst) >= 0; }

    // A lane that entered the stage.
    void add(const PartedRound& round) {
        const std::lock_guard<std::mutex> lock(mutex_);
        rounds_.push_back(round);
        held_.fetch_add(1, release);
    }

    // Any thread: all rounds before this one have left.
    void begin_turn(std::int64_t serial) { turn_.store(serial, seq_cst); }

    // A lane takes the round whose turn it is. False: there is none, or another lane has it.
    bool try_take(PartedRound& round) {
        const auto serial = turn_.exchange(none, seq_cst);
        if (serial == none) return false;
        const std::lock_guard<std::mutex> lock(mutex_);
        for (auto& held : rounds_)
            if (held.serial == serial) {
                round = held;
                held = rounds_.back();
                rounds_.pop_back();
                return true;
            }
        assert(false && "a round in turn is here");
        return false;
    }

    // The lane that has it: it is not finished.
    void put_back(const PartedRound& round) {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            rounds_.push_back(round);
        }
        begin_turn(round.serial);
    }

    // The lane that has it: it is finished.
    void end_one() { held_.fetch_sub(1, release); }

private:
    static constexpr std::int64_t none = -1;

    std::mutex mutex_;
    std::vector<PartedRound> rounds_;
    Atomic<std::int64_t> held_{0};
    Atomic<std::int64_t> turn_{none};  // the serial number of the round whose turn it is
};

}  // namespace callboard
