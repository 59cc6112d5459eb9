// The predicate of a join on two rows: up to eight terms, which must all hold. A term is about one column of
// numbers of each side, of the same type.
//
// A term answers as Python does for the values: exactly for integers, in doubles for floats. NaN satisfies no term,
// and a band has no pair of one infinity, as their difference is NaN; Equal has it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace callboard {

enum class NumberType : std::uint8_t { int32, int64, float32, float64 };

inline constexpr std::size_t number_types = 4;

constexpr std::uint32_t size_of(NumberType type) {
    return type == NumberType::int32 || type == NumberType::float32 ? 4 : 8;
}

// Calls `use` with a zero of the type.
template <class Use>
decltype(auto) with_type(NumberType type, const Use& use) {
    switch (type) {
    case NumberType::int32: return use(std::int32_t{0});
    case NumberType::int64: return use(std::int64_t{0});
    case NumberType::float32: return use(float{0});
    default: return use(double{0});
    }
}

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

    // The same for integers, with a distance that no double represents.
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
