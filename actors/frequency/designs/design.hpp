// Makes a summary of the design that the user named.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>

#include "callboard/frequency/designs/partitioned.hpp"
#include "callboard/frequency/designs/sequential.hpp"

namespace callboard {

enum class Design { sequential, partitioned };

// For `streams` streams, of which at most `threads` count at once.
template <class Keys>
Summary<Keys>* make_summary(Design design, std::uint32_t capacity, std::uint64_t seed, unsigned streams,
                            unsigned threads) {
    assert(capacity != 0 && streams != 0);
    switch (design) {
    case Design::sequential: return new Sequential<Keys>(capacity, seed);
    case Design::partitioned: {
        unsigned partitions = 1;
        while (partitions < std::min(streams, threads) && capacity / (2 * partitions) >= Partitioned<Keys>::fewest)
            partitions *= 2;
        return new Partitioned<Keys>(capacity, seed, streams, partitions);
    }
    }
    return nullptr;
}

}  // namespace callboard
