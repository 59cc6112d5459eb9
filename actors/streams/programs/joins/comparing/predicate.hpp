// The predicate of a join on two rows: up to eight terms, which must all hold. A term is about one column of
// numbers of each side, of the same type.
//
// A term answers as Python does for the values: exactly for integers, in doubles for floats. NaN satisfies no term,
// and a band has no pair of one infinity, as their difference is NaN; Equal has it.
#pragma once

#include <cstdint>
#include <limits>

#include "callboard/streams/programs/joins/comparing/numbers.hpp"

namespace callboard {

struct JoinTerm {
    NumberType type{NumberType::int64};
    bool is_equality{true};
    bool is_possible{true};   // false: no two values satisfy it
    std::uint64_t steps{0};   // a band's distance, of integers
    double distance{0};       // of floats

    // left == right
    static JoinTerm equal(NumberType type) { return {type, true, true, 0, 0}; }

    // abs(left - right) <= distance
    static JoinTerm band(NumberType type, double distance) {
        constexpr double beyond = 18446744073709551616.0;  // 2**64
        const bool is_possible = distance >= 0;
        const std::uint64_t steps = !is_possible         ? 0
                                    : distance >= beyond ? std::numeric_limits<std::uint64_t>::max()
                                                         : static_cast<std::uint64_t>(distance);
        return {type, false, is_possible, steps, distance};
    }

    // The same of integers, for a distance that no double is.
    static JoinTerm whole_band(NumberType type, std::uint64_t distance) {
        return {type, false, true, distance, static_cast<double>(distance)};
    }
};

struct JoinPredicate {
    static constexpr std::uint32_t most = 8;

    std::uint32_t count{0};  // of terms; the most selective one first, where it is known
    JoinTerm terms[most]{};

    void add(const JoinTerm& term) { terms[count++] = term; }
};

}  // namespace callboard
