// Checks whether the bytes of a column of texts are valid, one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace callboard {

// Whether no byte has its highest bit set. By a kilobyte: the compiler makes vectors of the
// inner loop, and a text that is not ASCII is found out early.
inline bool all_ascii(const unsigned char* letters, std::size_t count) {
    constexpr std::size_t piece = 1024;
    std::size_t at = 0;
    for (; at + piece <= count; at += piece) {
        unsigned char all = 0;
        for (std::size_t i = 0; i < piece; ++i) all |= letters[at + i];
        if (all & 0x80) return false;
    }
    unsigned char all = 0;
    for (; at < count; ++at) all |= letters[at];
    return !(all & 0x80);
}

// Whether `count` texts lie one behind the other within `size` bytes.
inline bool all_within(const unsigned char* data, std::size_t count, std::int64_t size) {
    const auto offset = [data](std::size_t at) {
        std::int32_t value;
        std::memcpy(&value, data + at * sizeof value, sizeof value);
        return value;
    };
    int backwards = 0;
    for (std::size_t i = 0; i < count; ++i) backwards |= offset(i + 1) < offset(i);
    return !backwards && offset(0) >= 0 && offset(count) <= size;
}

}  // namespace callboard
