// Work of a known cost: steps of a random number generator, calibrated to the machine.
#pragma once

#include <algorithm>
#include <cstdint>

#include "bench.hpp"

namespace bench {

inline std::uint64_t work(std::uint64_t x, int turns) {
    while (turns-- != 0) x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
}

// Turns of the generator per nanosecond, the machine's own: the best of many short tries.
inline double turns_per_ns() {
    constexpr int turns = 100000;
    double best = 0;
    std::uint64_t x = 1;
    for (int tries = 0; tries < 100; ++tries) {
        const std::int64_t begin = callboard::monotonic_ns();
        x = work(x, turns);
        best = std::max(best, turns / static_cast<double>(callboard::monotonic_ns() - begin));
    }
    require(x != 0, "the generator stands still");
    return best;
}

}  // namespace bench
