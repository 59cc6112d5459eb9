// A column of keys, read from memory in another layout: an Arrow array, or a column packed for another thread.
#pragma once

#include <cassert>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <numeric>
#include <vector>

#include "callboard/frequency/counting/keys.hpp"

namespace callboard {

// Integers or runs of bytes, and either a weight for each of them or no weights.
struct KeyColumn {
    std::vector<std::int64_t> integers;
    std::vector<ByteRun> runs;
    std::vector<std::uint64_t> weights;
    bool has_runs{false};

    // The next four return false if memory fails; then the column has no meaning.
    bool take_integers(const std::int64_t* data, std::size_t count) noexcept {
        return has_memory([&] {
            clear();
            integers.assign(data, data + count);
            return true;
        });
    }
    bool take_packed(const void* memory) noexcept {
        return has_memory([&] {
            unpack(memory);
            return true;
        });
    }
    // Also false if these are not Arrow's integers of up to 64 bits, texts or bytes, or if there may be nulls.
    bool take_arrow(const void* schema, const void* array) noexcept {
        return has_memory([&] { return read_arrow(schema, array); });
    }
    // Also makes a run of each integer; the runs point into `integers`.
    bool make_runs() noexcept {
        return has_runs || has_memory([&] {
            runs.clear();
            runs.reserve(integers.size());
            for (auto& integer : integers) runs.push_back({reinterpret_cast<const char*>(&integer), 8, integer_key});
            return has_runs = true;
        });
    }

    std::uint64_t total() const {
        return weights.empty() ? size() : std::accumulate(weights.begin(), weights.end(), std::uint64_t{0});
    }
    std::size_t size() const { return has_runs ? runs.size() : integers.size(); }
    const std::uint64_t* weights_or_null() const {
        assert((weights.empty() || weights.size() == size()) && "each key has a weight, or none has");
        return weights.empty() ? nullptr : weights.data();
    }

    // --- packed for another thread: a head, the weights, then integers, or the heads of runs and their bytes ----

    struct Head {
        std::uint64_t count;
        std::uint32_t has_runs, has_weights;
    };
    struct RunHead {
        std::uint32_t size, kind;
    };

    std::size_t packed_size() const {
        std::size_t size = sizeof(Head) + 8 * (weights.size() + integers.size() * !has_runs);
        if (has_runs)
            for (auto& run : runs) size += sizeof(RunHead) + run.size;
        return size;
    }

    void pack(void* memory) const {
        auto* at = static_cast<char*>(memory);
        const auto write = [&at](const void* data, std::size_t size) {
            if (size != 0) std::memcpy(at, data, size);
            at += size;
        };
        assert(weights.empty() || weights.size() == size());
        const Head head{size(), has_runs, !weights.empty()};
        write(&head, sizeof head);
        write(weights.data(), 8 * weights.size());
        if (!has_runs) {
            write(integers.data(), 8 * integers.size());
        } else {
            for (auto& run : runs) {
                const RunHead run_head{run.size, run.kind};
                write(&run_head, sizeof run_head);
            }
            for (auto& run : runs) write(run.data, run.size);
        }
        assert(at == static_cast<char*>(memory) + packed_size() && "packed_size() is exact");
    }

    void clear() {
        integers.clear();
        runs.clear();
        weights.clear();
        has_runs = false;
    }

private:
    template <class Take>
    static bool has_memory(const Take& take) noexcept {
        try {
            return take();
        } catch (const std::bad_alloc&) {
            return false;
        }
    }

    // Reads what pack() wrote. The runs point into that memory.
    void unpack(const void* memory) {
        const auto* at = static_cast<const char*>(memory);
        const auto read = [&at](void* data, std::size_t size) {
            if (size != 0) std::memcpy(data, at, size);
            at += size;
        };
        Head head;
        read(&head, sizeof head);
        assert(head.has_runs <= 1 && head.has_weights <= 1 && "pack() wrote it");
        has_runs = head.has_runs;
        weights.resize(head.has_weights ? head.count : 0);
        read(weights.data(), 8 * weights.size());
        integers.resize(has_runs ? 0 : head.count);
        read(integers.data(), 8 * integers.size());
        runs.clear();
        if (!has_runs) return;
        runs.reserve(head.count);
        const char* data = at + sizeof(RunHead) * head.count;
        for (std::uint64_t i = 0; i < head.count; ++i) {
            RunHead run;
            read(&run, sizeof run);
            assert(run.kind >= integer_key && run.kind <= tuple_key && "pack() wrote it");
            runs.push_back({data, run.size, run.kind});
            data += run.size;
        }
    }

    // --- Arrow's C data interface ---------------------------------------------------------------------------------

    struct ArrowColumn {  // struct ArrowArray
        std::int64_t length, null_count, offset, n_buffers, n_children;
        const void** buffers;
    };
    struct ArrowFormat {  // struct ArrowSchema
        const char *format, *name, *metadata;
        std::int64_t flags, n_children;
        ArrowFormat** children;
        ArrowFormat* dictionary;
    };

    bool read_arrow(const void* schema, const void* array) {
        const auto& column = *static_cast<const ArrowColumn*>(array);
        const auto& sort = *static_cast<const ArrowFormat*>(schema);
        if (sort.dictionary != nullptr || sort.metadata != nullptr) return false;  // its meaning is elsewhere
        const char* format = sort.format;
        if (format[0] == 0 || format[1] != 0 || column.n_buffers < 2) return false;
        if (column.null_count != 0 && column.buffers[0] != nullptr) return false;
        assert(column.length >= 0 && column.offset >= 0);
        clear();
        switch (format[0]) {
        case 'c': return read_integers<std::int8_t>(column);
        case 'C': return read_integers<std::uint8_t>(column);
        case 's': return read_integers<std::int16_t>(column);
        case 'S': return read_integers<std::uint16_t>(column);
        case 'i': return read_integers<std::int32_t>(column);
        case 'I': return read_integers<std::uint32_t>(column);
        case 'l': return read_integers<std::int64_t>(column);
        case 'u': return read_runs<std::int32_t>(column, text_key);
        case 'U': return read_runs<std::int64_t>(column, text_key);
        case 'z': return read_runs<std::int32_t>(column, bytes_key);
        case 'Z': return read_runs<std::int64_t>(column, bytes_key);
        default: return false;
        }
    }

    template <class Integer>
    bool read_integers(const ArrowColumn& column) {
        const auto* values = static_cast<const Integer*>(column.buffers[1]) + column.offset;
        integers.assign(values, values + column.length);
        return true;
    }

    template <class Offset>
    bool read_runs(const ArrowColumn& column, std::uint32_t kind) {
        has_runs = true;
        if (column.length == 0) return true;
        const auto* offsets = static_cast<const Offset*>(column.buffers[1]) + column.offset;
        const auto* data = static_cast<const char*>(column.buffers[2]);
        runs.reserve(static_cast<std::size_t>(column.length));
        for (std::int64_t i = 0; i < column.length; ++i) {
            assert(offsets[i] >= 0 && offsets[i] <= offsets[i + 1] && "Arrow's offsets ascend");
            const auto size = static_cast<std::uint64_t>(offsets[i + 1] - offsets[i]);
            if (size > std::numeric_limits<std::uint32_t>::max()) return false;
            runs.push_back({data + offsets[i], static_cast<std::uint32_t>(size), kind});
        }
        return true;
    }
};

}  // namespace callboard
