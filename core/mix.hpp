// The mixer of SplitMix64: Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators".
//
// mix() is one to one, and each bit of its argument moves about half of the bits of its result. So
// numbers that differ a little, or only in their upper bits, end up far apart whatever few bits of them
// one looks at.
//
// hash_bytes() is for runs of bytes: eight at a time are mixed in by a multiplication whose upper half is folded
// into its lower one, as in Wang's wyhash. Whoever does not know the seed cannot choose runs that collide.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

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

inline std::uint64_t hash_bytes(std::uint64_t seed, const char* data, std::size_t size) {
    const auto fold = [](std::uint64_t a, std::uint64_t b) {
        const auto product = static_cast<unsigned __int128>(a) * b;
        return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
    };
    constexpr std::uint64_t odd = 0x9e3779b97f4a7c15u;
    std::uint64_t state = seed ^ mix(size), word;
    for (; size >= 8; data += 8, size -= 8) {
        std::memcpy(&word, data, 8);
        state = fold(state ^ word, seed | 1) + odd;
    }
    word = 0;
    if (size != 0) std::memcpy(&word, data, size);
    return mix(fold(state ^ word, seed | 1) + odd);
}

}  // namespace callboard
