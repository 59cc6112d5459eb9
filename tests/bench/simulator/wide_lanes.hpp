// Bit sets for more than 64 lanes, which replace the words of pool.hpp when the simulator is compiled.
#pragma once

#include <cstdint>

namespace callboard {

struct WideLanes {
    static constexpr int count = 4;

    std::uint64_t words[count]{};

    WideLanes() = default;
    WideLanes(std::uint64_t word) { words[0] = word; }

    explicit operator bool() const { return *this != WideLanes(); }
    bool operator==(const WideLanes& other) const {
        for (int i = 0; i < count; ++i)
            if (words[i] != other.words[i]) return false;
        return true;
    }
    bool operator!=(const WideLanes& other) const { return !(*this == other); }
    WideLanes operator|(const WideLanes& other) const { return WideLanes(*this) |= other; }
    WideLanes operator&(const WideLanes& other) const { return WideLanes(*this) &= other; }
    WideLanes& operator|=(const WideLanes& other) {
        for (int i = 0; i < count; ++i) words[i] |= other.words[i];
        return *this;
    }
    WideLanes& operator&=(const WideLanes& other) {
        for (int i = 0; i < count; ++i) words[i] &= other.words[i];
        return *this;
    }
    WideLanes operator~() const {
        WideLanes result;
        for (int i = 0; i < count; ++i) result.words[i] = ~words[i];
        return result;
    }
    WideLanes operator<<(std::uint32_t by) const {  // of one bit
        WideLanes result;
        result.words[by / 64] = words[0] << by % 64;
        return result;
    }
    // Only in `lanes & -lanes`: the lowest bit.
    WideLanes operator-() const {
        WideLanes result;
        for (int i = 0; i < count; ++i) {
            result.words[i] = -words[i];
            if (words[i] != 0) break;
        }
        return result;
    }
};

inline int lowest_lane(const WideLanes& lanes) {
    for (int i = 0; i < WideLanes::count; ++i)
        if (lanes.words[i] != 0) return 64 * i + __builtin_ctzll(lanes.words[i]);
    return 64 * WideLanes::count;
}

}  // namespace callboard
