// A ring of bytes for the checker.
#pragma once

#include "callboard/mailbox/shared/byte_ring.hpp"
#include "model.hpp"

namespace model {

using callboard::RecordHeader;
using callboard::RingCounters;
using callboard::RingReader;
using callboard::RingWriter;

constexpr std::uint64_t unit = RecordHeader::unit;

// A ring of units, each with a plain value beside it: a record's bytes are those values.
template <int units>
struct Ring {
    RingCounters counters;
    alignas(8) unsigned char bytes[units * unit] = {};
    Plain<int> values[units];
    RingWriter writer{counters, bytes, units * unit};
    RingReader reader{counters, bytes, units * unit};

    bool try_write(int value, std::uint32_t size = 0) { return try_write(writer, value, size); }
    bool try_read(int value, std::uint32_t size = 0) { return try_read(reader, value, size); }

    // By the successors of a process that has ended.
    RingWriter next_writer() { return {counters, bytes, units * unit}; }
    RingReader next_reader() { return {counters, bytes, units * unit}; }

    // The next record, whatever its value is.
    bool try_read_any() {
        RingReader::Record record;
        if (!reader.next(record)) return false;
        value = static_cast<int>(record.kind);
        CHECK(values[(record.bytes - bytes) / 8 - 1] == value);
        return true;
    }
    int value = -1;

    bool try_write(RingWriter& writer, int value, std::uint32_t size = 0) {
        unsigned char* const at = writer.reserve(size, static_cast<std::uint32_t>(value));
        if (at == nullptr) return false;
        for (std::uint64_t i = 0; i < RecordHeader::room(size) / unit; ++i) values[(at - bytes) / 8 - 1 + i] = value;
        return true;
    }
    bool try_read(RingReader& reader, int value, std::uint32_t size = 0) {
        RingReader::Record record;
        if (!reader.next(record)) return false;
        CHECK(record.size == size && record.kind == static_cast<std::uint32_t>(value));
        for (std::uint64_t i = 0; i < RecordHeader::room(size) / unit; ++i)
            CHECK(values[(record.bytes - bytes) / 8 - 1 + i] == value);
        return true;
    }
};

}  // namespace model
