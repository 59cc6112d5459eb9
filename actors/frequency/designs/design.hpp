// The designs by their numbers.
#pragma once

#include <memory>

#include "callboard/frequency/designs/cooperative.hpp"
#include "callboard/frequency/designs/partitioned.hpp"
#include "callboard/frequency/designs/sequential.hpp"

namespace callboard {

enum class Design { sequential, cooperative, partitioned };

// Das et al. 2009, section 5.3: a queue of requests that is longer makes a stream rest.
constexpr std::uint32_t throttle = 500;

template <class Keys>
Summary<Keys>* make_summary(Design design, std::uint32_t capacity, std::uint64_t seed, unsigned streams,
                            unsigned threads) {
    switch (design) {
    case Design::sequential: return new Sequential<Keys>(capacity, seed);
    case Design::cooperative: return new Cooperative<Keys>(capacity, seed, streams, throttle);
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
