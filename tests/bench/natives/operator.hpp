// An operator of a known number of floating-point operations for each row.
#pragma once

#include <cstdint>
#include <vector>

namespace shapes {

// One after the other, as they depend on each other; the compiler may take several rows at once.
__attribute__((noinline, aligned(64))) inline void multiply(double* values, std::uint32_t rows, int flops) {
    for (std::uint32_t i = 0; i < rows; ++i) {
        double value = values[i];
        for (int left = flops; left > 0; --left) value *= 1.0000001;
        values[i] = value;
    }
}

inline void fill(double* values, std::uint32_t rows) {
    for (std::uint32_t i = 0; i < rows; ++i) values[i] = static_cast<double>(i);
}

// Room for the rows, from the beginning of a cache line on: elsewhere an operator takes longer.
inline double* aligned(std::vector<double>& room, std::uint32_t rows) {
    room.assign(rows + 8, 1.0);
    const auto past = reinterpret_cast<std::uintptr_t>(room.data()) % 64 / sizeof(double);
    return room.data() + (8 - past) % 8;
}

}  // namespace shapes
