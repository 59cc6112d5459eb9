// Comparing with an interval, one row at a time: what each processor can, and what the others are held against.
#pragma once

#include <cstdint>

#include "callboard/streams/programs/joins/comparing/interval.hpp"

namespace callboard::scalar {

// A bit for each of up to 64 rows.
template <class T>
std::uint64_t mask_rows(const void* rows, std::uint32_t count, const Interval& interval) {
    const T* const values = static_cast<const T*>(rows);
    const T low = interval.low<T>(), high = interval.high<T>();
    std::uint64_t mask = 0;
    for (std::uint32_t i = 0; i < count; ++i)
        mask |= static_cast<std::uint64_t>((low <= values[i]) & (values[i] <= high)) << i;
    return mask;
}

template <class T>
std::uint32_t mask_words(const void* rows, const Interval& interval, std::uint32_t words, std::uint64_t* masks) {
    std::uint32_t found = 0;
    for (std::uint32_t i = 0; i < words; ++i) {
        masks[i] = mask_rows<T>(static_cast<const T*>(rows) + 64 * i, 64, interval);
        found |= std::uint32_t{masks[i] != 0} << i;
    }
    return found;
}

}  // namespace callboard::scalar
