// Each set of vector instructions that this processor has against the plain loop.
#include "callboard/streams/programs/joins/comparing/comparison.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <vector>

#include "callboard/core/mix.hpp"
#include "check.hpp"

using namespace callboard;

namespace {

constexpr VectorPath paths[] = {VectorPath::scalar, VectorPath::avx2, VectorPath::avx512, VectorPath::neon};

template <class T>
std::vector<T> column(std::uint64_t seed, std::size_t rows) {
    using Limits = std::numeric_limits<T>;
    const T strange[] = {Limits::min(), Limits::max(), Limits::lowest(), Limits::infinity(), Limits::quiet_NaN(),
                         Limits::denorm_min(), T(-T{0}), T(1), T(-1), T(2)};
    std::vector<T> values(rows);
    for (std::size_t i = 0; i < rows; ++i) {
        const std::uint64_t draw = random_number(seed, i);
        values[i] = draw % 4 == 0 ? strange[draw / 4 % 10] : static_cast<T>(static_cast<int>(draw / 4 % 201) - 100);
    }
    return values;
}

// One that begins where no vector would, with ends that are among the values.
template <class T>
void compare(NumberType type) {
    constexpr std::uint32_t most = 32;
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        const std::size_t shift = seed % 7;
        const auto values = column<T>(seed, shift + 64 * most);
        for (std::uint32_t words : {0u, 1u, 2u, 15u, 16u, 17u, 31u, 32u}) {
            const T one = values[random_number(seed, 5000 + words) % values.size()];
            const T other = values[random_number(seed, 6000 + words) % values.size()];
            if (one != one || other != other) continue;
            Interval interval;
            interval.set(std::min(one, other), std::max(one, other));
            std::vector<std::uint64_t> expected(most + 1, 77);
            std::uint32_t expected_found = 0;
            for (std::uint32_t word = 0; word < words; ++word) {
                expected[word] = 0;
                for (std::uint32_t row = 0; row < 64; ++row) {
                    const T value = values[shift + 64 * word + row];
                    if (std::min(one, other) <= value && value <= std::max(one, other))
                        expected[word] |= std::uint64_t{1} << row;
                }
                if (expected[word] != 0) expected_found |= 1u << word;
            }
            for (VectorPath path : paths) {
                if (!has_path(path)) continue;
                const BlockComparison comparison = comparison_of(path);
                std::vector<std::uint64_t> masks(most + 1, 77);
                CHECK_EQUAL(comparison.words_of(type)(values.data() + shift, interval, words, masks.data()),
                            expected_found);
                CHECK(masks == expected);
                for (std::uint32_t rows : {1u, 15u, 16u, 17u, 63u, 64u}) {
                    if (words == 0) continue;
                    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(shift);
                    const std::vector<T> some(begin, begin + rows);  // behind which a sanitizer sees each look
                    CHECK_EQUAL(comparison.rows_of(type)(some.data(), rows, interval),
                                expected[0] & ~std::uint64_t{0} >> (64 - rows));
                }
            }
        }
    }
}

}  // namespace

TEST("every path finds the matches of the plain loop, of any type and number of words") {
    compare<std::int32_t>(NumberType::int32);
    compare<std::int64_t>(NumberType::int64);
    compare<float>(NumberType::float32);
    compare<double>(NumberType::float64);
}

TEST("the best path is one that the processor has") {
    CHECK(has_path(best_path()));
    for (VectorPath path : paths)
        if (has_path(path)) std::printf("     path %d is tested\n", static_cast<int>(path));
#if defined(__aarch64__)
    CHECK(best_path() == VectorPath::neon);
#endif
}

CHECK_MAIN
