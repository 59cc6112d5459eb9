// A ring of bytes in memory of this process, and what its tests write into it.
#pragma once

#include <cstring>
#include <vector>

#include "callboard/mailbox/shared/byte_ring.hpp"

namespace rings {

using callboard::RingCounters;
using callboard::RingReader;
using callboard::RingWriter;

// Both ends of a ring.
struct ByteRing {
    explicit ByteRing(std::uint64_t capacity)
        : bytes(capacity / sizeof(std::uint64_t)), writer(counters, start(), capacity), reader(counters, start(), capacity) {}

    unsigned char* start() { return reinterpret_cast<unsigned char*>(bytes.data()); }

    RingCounters counters{};
    std::vector<std::uint64_t> bytes;
    RingWriter writer;
    RingReader reader;
};

// The record of a number: its size and each of its bytes follow from the number.
inline std::uint32_t size_of(std::uint64_t number, std::uint64_t largest) {
    return static_cast<std::uint32_t>(number * 7 % (largest + 1));
}
inline unsigned char byte_of(std::uint64_t number, std::uint32_t i) {
    return static_cast<unsigned char>(number * 31 + i);
}

// False: no room now.
inline bool try_write(RingWriter& writer, std::uint64_t number) {
    const std::uint32_t size = size_of(number, writer.largest());
    unsigned char* const at = writer.reserve(size, static_cast<std::uint32_t>(number & 0xffff));
    if (at == nullptr) return false;
    for (std::uint32_t i = 0; i < size; ++i) at[i] = byte_of(number, i);
    return true;
}

inline bool is_record(const RingReader::Record& record, std::uint64_t number, std::uint64_t largest) {
    bool good = record.kind == (number & 0xffff) && record.size == size_of(number, largest);
    for (std::uint32_t i = 0; good && i < record.size; ++i) good = record.bytes[i] == byte_of(number, i);
    return good;
}

}  // namespace rings
