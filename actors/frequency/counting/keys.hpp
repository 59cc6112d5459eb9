// The kinds of keys that need no interpreter: integers; and texts, bytes and tuples of these as runs of bytes.
//
// A summary is a template on the kind of its keys, which has their hash and equality. The summary keeps a key's memory
// (Kept) when the key gets a counter, exchanges it when another key takes the counter over, and answers with copies
// (Copy). A Probe is a key in the caller's memory.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "callboard/core/mix.hpp"

namespace callboard {

// 64-bit integers.
struct IntegerKeys {
    using Probe = std::int64_t;
    using Kept = std::int64_t;
    using Copy = std::int64_t;

    static std::uint64_t hash(std::uint64_t seed, Probe key) { return mix(static_cast<std::uint64_t>(key) ^ seed); }
    static std::uint64_t hash_of(std::uint64_t seed, Kept key) { return hash(seed, key); }
    static bool same(Probe one, Probe other) { return one == other; }
    static bool equal(Kept kept, Probe key) { return kept == key; }
    static void replace(Kept& kept, Probe key, std::uint64_t) { kept = key; }
    static void drop(Kept) {}
    static Probe probe(Kept kept) { return kept; }
    static Copy copy(Kept kept) { return kept; }
    static Probe probe_of(Copy key) { return key; }
};

// The meaning of a run of bytes. Runs of different kinds are never equal, such as a text and its encoding.
constexpr std::uint32_t integer_key = 1;  // its 8 bytes
constexpr std::uint32_t text_key = 2;     // UTF-8
constexpr std::uint32_t bytes_key = 3;
constexpr std::uint32_t tuple_key = 4;    // of each element its kind, its size, its bytes

struct ByteRun {
    const char* data;
    std::uint32_t size;
    std::uint32_t kind;
};

struct ByteKeys {
    using Probe = ByteRun;
    // A kept key has separate memory. The next key of the counter takes the memory over if it is large enough,
    // and not far too large.
    struct Blob {
        std::uint64_t hash;
        std::uint32_t size, kind, room;
        char data[4];  // and as many more as there is room for
    };
    using Kept = Blob*;
    struct Copy {
        std::string data;
        std::uint32_t kind;
    };

    static std::uint64_t hash(std::uint64_t seed, const Probe& key) {
        return hash_bytes(seed + key.kind, key.data, key.size);
    }
    static std::uint64_t hash_of(std::uint64_t, Kept kept) { return kept->hash; }
    static ByteRun probe(Kept kept) { return {kept->data, kept->size, kept->kind}; }
    static bool same(const Probe& one, const Probe& other) {
        return one.size == other.size && one.kind == other.kind && equal_bytes(one.data, other.data, one.size);
    }
    static bool equal(Kept kept, const Probe& key) { return same(probe(kept), key); }
    static void replace(Kept& kept, const Probe& key, std::uint64_t hash) {
        const std::uint32_t room = key.size < 12 ? 12 : key.size;
        if (kept == nullptr || kept->room < room || kept->room / 4 > room) {
            void* const memory = std::malloc(offsetof(Blob, data) + room);
            if (memory == nullptr) throw std::bad_alloc();
            std::free(kept);
            kept = static_cast<Blob*>(memory);
            kept->room = room;
        }
        assert(kept->room >= key.size && kept->room / 4 <= room);
        kept->hash = hash;
        kept->size = key.size;
        kept->kind = key.kind;
        std::memcpy(kept->data, key.data, key.size);
    }
    static void drop(Kept kept) { std::free(kept); }
    static Copy copy(Kept kept) { return {{kept->data, kept->size}, kept->kind}; }
    static ByteRun probe_of(const Copy& key) {
        return {key.data.data(), static_cast<std::uint32_t>(key.data.size()), key.kind};
    }
};

}  // namespace callboard
