// The designs by their numbers.
#pragma once

#include <memory>

#include "callboard/frequency/designs/partitioned.hpp"
#include "callboard/frequency/designs/sequential.hpp"

namespace callboard {

enum class Design { sequential, partitioned };

template <class Keys>
Summary<Keys>* make_summary(Design design, std::uint32_t capacity, std::uint64_t seed, unsigned streams,
                            unsigned threads) {
    switch (design) {
    case Design::sequential: return new Sequential<Keys>(capacity, seed);
    case Design::partitioned: {
        unsigned partitions = 1;
        // As many as threads run at once, if each gets so many counters that chance divides keys evenly.
        while (partitions < std::min(streams, threads) && capacity / partitions >= 512) partitions *= 2;
        return new Partitioned<Keys>(capacity, seed, streams, partitions);
    }
    }
    return nullptr;
}

}  // namespace callboard
