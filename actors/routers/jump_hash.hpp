// Jump consistent hash: the place of a key, where places are added and removed at the end only.
//
// Lamping and Veach, "A fast, minimal memory, consistent hash algorithm" (2014), figure 1. It takes no memory, and
// some ln(places) steps. One place more moves one key in `places`, and to the new place only. A ring or rendezvous
// hashing could give up any place; a router gives up the last ones only.
#pragma once

#include <cstdint>

namespace callboard {

inline std::int64_t jump_hash(std::uint64_t key, std::int64_t places) {
    std::int64_t place = -1;
    std::int64_t next = 0;
    while (next < places) {
        place = next;
        key = key * 2862933555777941757ULL + 1;
        const double divisor = static_cast<double>((key >> 33) + 1);
        next = static_cast<std::int64_t>(static_cast<double>(place + 1) * (static_cast<double>(1LL << 31) / divisor));
    }
    return place;
}

}  // namespace callboard
