// The input and the output of a lane of a join.
#pragma once

#include <cstddef>
#include <cstdint>

#include "callboard/streams/programs/joins/comparing/predicate.hpp"

namespace callboard {

// Ready rows of both sides, in the order of their times: a piece of the merged sequence. The caller owns it.
template <class Time>
struct JoinBatch {
    std::size_t rows{0};                             // below 2**32
    const std::uint8_t* sides{nullptr};              // 0 or 1
    const Time* times{nullptr};
    const std::uint64_t* numbers{nullptr};           // their places in the sequence, or in their side's
    const void* values[JoinPredicate::most]{};       // of each term, of its type
    const std::uint8_t* alone{nullptr};              // 1: the row has no partner; null: no such row
};

// A row of the batch and the number of a row that it matches.
struct JoinMatch {
    std::uint32_t row;
    std::uint64_t partner;

    friend bool operator==(const JoinMatch& one, const JoinMatch& other) {
        return one.row == other.row && one.partner == other.partner;
    }
};

}  // namespace callboard
