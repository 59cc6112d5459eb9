// The mixer of SplitMix64: Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators".
//
// mix() is one to one, and each bit of its argument moves about half of the bits of its result. So
// numbers that differ a little, or only in their upper bits, end up far apart whatever few bits of them
// one looks at.
#pragma once

#include <cstdint>

namespace callboard {

constexpr std::uint64_t mix(std::uint64_t value) {
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

// Number `index`, from 0 on, of the generator: the mix of a state that begins at `seed` and grows by 2**64
// divided by the golden ratio each time.
constexpr std::uint64_t random_number(std::uint64_t seed, std::uint64_t index) {
    return mix(seed + (index + 1) * 0x9e3779b97f4a7c15u);
}

}  // namespace callboard
