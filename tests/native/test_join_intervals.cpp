// A term's interval against the term itself, on values that are made to break it.
#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "callboard/core/mix.hpp"
#include "callboard/streams/programs/joins/comparing/interval.hpp"
#include "check.hpp"

using namespace callboard;

namespace {

// What Python says, of integers in arithmetic that does not overflow.
template <class T>
bool holds(const JoinTerm& term, T x, T v, double distance) {
    if (term.is_equality) return x == v;
    if constexpr (std::is_integral_v<T>) {
        const __int128 difference = static_cast<__int128>(x) - v;
        return (difference < 0 ? -difference : difference) <= static_cast<__int128>(term.steps) && term.is_possible;
    } else {
        return std::fabs(static_cast<double>(x) - static_cast<double>(v)) <= distance;
    }
}

template <class T>
std::vector<T> ends_of_the_type() {
    using Limits = std::numeric_limits<T>;
    if constexpr (std::is_integral_v<T>) {
        std::vector<T> values;
        for (T near : {Limits::min(), T{Limits::min() / 2}, T{-10}, T{0}, T{10}, T{Limits::max() / 2}, Limits::max()})
            for (int step : {-3, -2, -1, 0, 1, 2, 3})
                values.push_back(static_cast<T>(static_cast<std::uint64_t>(near) + static_cast<std::uint64_t>(step)));
        return values;
    } else {
        std::vector<T> values{Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity()};
        for (T near : {T{0}, Limits::denorm_min(), Limits::min(), Limits::epsilon(), T(0x1p-53), T(0.1), T{1}, T{10},
                       T(5000.37), T(0x1p24), T(1e30), Limits::max() / 2, Limits::max()})
            for (T sign : {T{1}, T{-1}}) {
                const T value = sign * near;
                values.push_back(value);
                values.push_back(std::nextafter(value, Limits::infinity()));
                values.push_back(std::nextafter(value, -Limits::infinity()));
            }
        return values;
    }
}

template <class T>
std::string text(T v, T low, T high, double distance) {
    std::ostringstream out;
    out.precision(20);
    out << "v " << v << " distance " << distance << " low " << low << " high " << high;
    return out.str();
}

// All x of a list, and the ends themselves with their neighbours.
template <class T>
void check_interval(const JoinTerm& term, T v, double distance, const std::vector<T>& others) {
    T low, high;
    const bool found = find_interval(term, v, low, high);
    const auto check_one = [&](T x) {
        if ((found && low <= x && x <= high) != holds(term, x, v, distance))
            check::fail(__FILE__, __LINE__, text(v, low, high, distance) + " x " + std::to_string(x));
    };
    for (T x : others) check_one(x);
    if (!found) return;
    for (T end : {low, high}) {
        check_one(end);
        if constexpr (std::is_integral_v<T>) {
            if (end != std::numeric_limits<T>::max()) check_one(static_cast<T>(end + 1));
            if (end != std::numeric_limits<T>::min()) check_one(static_cast<T>(end - 1));
        } else {
            check_one(std::nextafter(end, std::numeric_limits<T>::infinity()));
            check_one(std::nextafter(end, -std::numeric_limits<T>::infinity()));
        }
    }
}

template <class T>
constexpr NumberType type_of() {
    if constexpr (std::is_same_v<T, std::int32_t>) return NumberType::int32;
    else if constexpr (std::is_same_v<T, std::int64_t>) return NumberType::int64;
    else if constexpr (std::is_same_v<T, float>) return NumberType::float32;
    else return NumberType::float64;
}

template <class T>
void is_exact_at_the_ends() {
    const auto values = ends_of_the_type<T>();
    const double infinity = std::numeric_limits<double>::infinity();
    for (T v : values) {
        check_interval(JoinTerm::equal(type_of<T>()), v, 0, values);
        for (double distance : {0.0, -0.0, -1.0, 1.0, 2.5, 10.0, 0.1, 1e-3, 1e-300, 5e-324, 0x1p-53, 0x1p31, 0x1p63,
                                1.8446744073709552e19, 1e25, 1e300, 1.7976931348623157e308, infinity, -infinity,
                                std::numeric_limits<double>::quiet_NaN()})
            check_interval(JoinTerm::band(type_of<T>(), distance), v, distance, values);
        for (std::uint64_t distance : {std::uint64_t{0}, std::uint64_t{9007199254740993}, ~std::uint64_t{0} / 2,
                                       ~std::uint64_t{0} - 1, ~std::uint64_t{0}})
            if constexpr (std::is_integral_v<T>)
                check_interval(JoinTerm::whole_band(type_of<T>(), distance), v, 0, values);
    }
}

template <class T>
T number_of(std::uint64_t bits) {
    T value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

// Any bits at all, and numbers of like size, where most is cancelled.
template <class T>
void is_exact_of_random_numbers() {
    for (std::uint64_t i = 0; i < 20000; ++i) {
        T v = number_of<T>(random_number(1, i));
        double distance = std::fabs(number_of<double>(random_number(2, i)));
        std::vector<T> others{number_of<T>(random_number(3, i)), static_cast<T>(v / 2)};
        if (i % 2 == 0) {
            v = static_cast<T>(static_cast<double>(random_number(4, i) % 20001) / 16 - 625);
            distance = static_cast<double>(random_number(5, i) % 2001) / 16;
            const double middle = static_cast<double>(v);
            others = {static_cast<T>(middle + distance), static_cast<T>(middle - distance)};
        }
        check_interval(JoinTerm::band(type_of<T>(), distance), v, distance, others);
    }
}

}  // namespace

TEST("an interval of integers is exact, also where a difference would overflow") {
    is_exact_at_the_ends<std::int32_t>();
    is_exact_at_the_ends<std::int64_t>();
}

TEST("an interval of floats is exact, also of infinities, NaN, denormals and where all is cancelled") {
    is_exact_at_the_ends<float>();
    is_exact_at_the_ends<double>();
}

TEST("intervals of random floats are exact") {
    is_exact_of_random_numbers<float>();
    is_exact_of_random_numbers<double>();
}

TEST("an interval beside 0 includes the values of a rounded difference") {
    double low, high;
    CHECK(find_interval(JoinTerm::band(NumberType::float64, 1), -1.0, low, high));
    CHECK_EQUAL(high, 0x1p-53);
    CHECK_EQUAL(low, -2.0);
}

TEST("a band of infinite distance has all numbers but the same infinity") {
    const double infinity = std::numeric_limits<double>::infinity();
    double low, high;
    CHECK(find_interval(JoinTerm::band(NumberType::float64, infinity), infinity, low, high));
    CHECK(low == -infinity && high == std::numeric_limits<double>::max());
    CHECK(find_interval(JoinTerm::equal(NumberType::float64), infinity, low, high));
    CHECK(low == infinity && high == infinity);
}

CHECK_MAIN
