// Heuristics for tests that take any of them.
#pragma once

#include "callboard/scheduling/flow/heuristics.hpp"

inline std::unique_ptr<callboard::Chooser> any_chooser(std::uint64_t seed) {
    switch (seed % 5) {
        case 0: return std::make_unique<callboard::ChooseByQueueSize>(65536);
        case 1: return std::make_unique<callboard::ChooseLatest>(true);
        case 4: return std::make_unique<callboard::ChooseLatest>(false);
        case 2: return std::make_unique<callboard::ChooseByTime>();
        default: return std::make_unique<callboard::ChooseByThroughput>(100'000'000, 500'000);
    }
}
