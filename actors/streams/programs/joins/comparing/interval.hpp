// A term as an interval: of one row's value v, the values x of the other side with which it holds are those with
// low <= x <= high, in the column's own type. So comparing is two comparisons, whatever the term was.
//
// Why the interval is exact.
//   1. For integers, x - v is computed without overflow: the ends are v -+ distance, or the type's own ends.
//   2. For floats, x - v is rounded to a double, and rounding keeps order: the x >= v with x - v <= distance are
//      all those up to a greatest one. It is looked for among the floats themselves, which have an order as
//      integers have: beside v + distance first, and then by halving. Only v + distance, or its neighbours, would
//      be wrong: -1 and any x up to 2**-53 are at most 1 apart, as doubles see it.
//   3. |x - v| = |(-x) - (-v)|, rounded or not: the lower end is the upper one of -v, negated.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "callboard/streams/programs/joins/comparing/predicate.hpp"

namespace callboard {

// The ends of an interval of any type, for callers that know the type.
struct alignas(16) Interval {
    unsigned char low_bytes[8], high_bytes[8];

    template <class T>
    void set(T low, T high) {
        std::memcpy(low_bytes, &low, sizeof low);
        std::memcpy(high_bytes, &high, sizeof high);
    }
    template <class T>
    T low() const {
        T value;
        std::memcpy(&value, low_bytes, sizeof value);
        return value;
    }
    template <class T>
    T high() const {
        T value;
        std::memcpy(&value, high_bytes, sizeof value);
        return value;
    }
};

// Floats in their order as integers; the two zeros are one.
template <class Float>
struct FloatOrder {
    using Ordinal = std::conditional_t<sizeof(Float) == 4, std::int32_t, std::int64_t>;
    using Distance = std::make_unsigned_t<Ordinal>;

    static Ordinal ordinal_of(Float value) {
        Ordinal bits;
        std::memcpy(&bits, &value, sizeof bits);
        return bits < 0 ? std::numeric_limits<Ordinal>::min() - bits : bits;
    }
    static Float float_at(Ordinal ordinal) {
        const Ordinal bits = ordinal < 0 ? std::numeric_limits<Ordinal>::min() - ordinal : ordinal;
        Float value;
        std::memcpy(&value, &bits, sizeof value);
        return value;
    }
    static Distance distance(Ordinal from, Ordinal to) {
        return static_cast<Distance>(to) - static_cast<Distance>(from);
    }
    static Ordinal middle(Ordinal one, Ordinal other) { return (one & other) + ((one ^ other) >> 1); }
};

// The greatest x with x - v <= distance; v and distance are finite, distance is not negative.
template <class Float>
Float upper_end(Float v, double distance) {
    using Order = FloatOrder<Float>;
    using Ordinal = typename Order::Ordinal;
    Ordinal inside = Order::ordinal_of(v), outside = Order::ordinal_of(std::numeric_limits<Float>::infinity());
    const auto look_at = [&](Ordinal ordinal) {
        if (ordinal <= inside || ordinal >= outside) return;
        const double difference = static_cast<double>(Order::float_at(ordinal)) - static_cast<double>(v);
        (difference <= distance ? inside : outside) = ordinal;
    };
    const double most = static_cast<double>(std::numeric_limits<Float>::max());
    const Ordinal guess = Order::ordinal_of(static_cast<Float>(std::min(static_cast<double>(v) + distance, most)));
    look_at(guess);
    look_at(guess + 1);
    look_at(guess - 1);
    while (Order::distance(inside, outside) > 1) look_at(Order::middle(inside, outside));
    return Order::float_at(inside);
}

// False: no value is in it.
template <class T>
bool find_interval(const JoinTerm& term, T v, T& low, T& high) {
    if (!term.is_possible || v != v) return false;
    low = high = v;
    if (term.is_equality) return true;
    if constexpr (std::is_integral_v<T>) {
        const auto wide = [](T value) { return static_cast<std::uint64_t>(static_cast<std::int64_t>(value)); };
        constexpr T least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
        low = static_cast<T>(wide(v) - std::min(term.steps, wide(v) - wide(least)));
        high = static_cast<T>(wide(v) + std::min(term.steps, wide(most) - wide(v)));
    } else if (std::isinf(term.distance)) {
        // All but the same infinity.
        low = v < std::numeric_limits<T>::lowest() ? std::numeric_limits<T>::lowest()
                                                   : -std::numeric_limits<T>::infinity();
        high = v > std::numeric_limits<T>::max() ? std::numeric_limits<T>::max() : std::numeric_limits<T>::infinity();
    } else {
        if (std::isinf(v)) return false;
        low = -upper_end(-v, term.distance);
        high = upper_end(v, term.distance);
    }
    return true;
}

}  // namespace callboard
