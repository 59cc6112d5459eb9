// The mixer of SplitMix64: Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators".
//
// mix() is one to one, and each bit of its argument changes about half of the bits of its result. So the results of
// numbers that differ a little, or only in their upper bits, differ in whatever few bits a caller uses.
//
// hash_bytes() is for runs of bytes. Sixteen at a time are mixed in by a multiplication whose upper half is folded
// into its lower one, as in Wang's wyhash. The last bytes are mixed in by loads that overlap, so the many short
// runs take no loop. Both factors of each product depend on the seed: if an attacker who chooses the runs could
// make one factor 0, it would hide the other. So an attacker cannot choose runs that collide without knowing the
// seed.
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

// The product's halves, folded.
constexpr std::uint64_t fold_product(std::uint64_t a, std::uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

template <class Word>
std::uint64_t load_word(const char* at) {
    Word word;
    std::memcpy(&word, at, sizeof word);
    return word;
}

// All bytes of a run of up to 16, as two words: runs of one size are equal exactly if these are.
struct ShortRun {
    std::uint64_t low, high;

    ShortRun(const char* data, std::size_t size) {
        if (size >= 8) {
            low = load_word<std::uint64_t>(data);
            high = load_word<std::uint64_t>(data + size - 8);
        } else if (size >= 4) {
            low = load_word<std::uint32_t>(data);
            high = load_word<std::uint32_t>(data + size - 4);
        } else {
            low = size == 0 ? 0 : load_word<std::uint8_t>(data) << 8 | load_word<std::uint8_t>(data + size / 2);
            high = size == 0 ? 0 : load_word<std::uint8_t>(data + size - 1);
        }
    }
};

inline std::uint64_t hash_bytes(std::uint64_t seed, const char* data, std::size_t size) {
    constexpr std::uint64_t odd = 0x9e3779b97f4a7c15u;
    std::uint64_t state = seed;
    std::size_t left = size;
    for (; left > 16; data += 16, left -= 16)
        state = odd + fold_product(load_word<std::uint64_t>(data) ^ state,
                                   load_word<std::uint64_t>(data + 8) ^ odd * state);
    const ShortRun rest(data, left);
    return fold_product(odd ^ size, odd + fold_product(rest.low ^ state, rest.high ^ odd * state));
}

__attribute__((noinline)) inline bool equal_long_bytes(const char* one, const char* other, std::size_t size) {
    return std::memcmp(one, other, size) == 0;
}

inline bool equal_bytes(const char* one, const char* other, std::size_t size) {
    if (size > 16) return equal_long_bytes(one, other, size);
    const ShortRun a(one, size), b(other, size);
    return ((a.low ^ b.low) | (a.high ^ b.high)) == 0;
}

}  // namespace callboard
