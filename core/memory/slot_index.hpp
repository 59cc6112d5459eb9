// A hash table of slots, for counted keys and for the buckets of a join's grid.
//
// A bucket is a cache line with eight places. Each place has a tag, a byte of the key's hash with its highest bit
// set, and all eight tags are compared at once, in one word. So a search for an absent key mostly reads one line,
// and takes no branch that is hard to predict. A change from one key to another does not move third ones. A key
// whose home bucket is full goes to the next with room, and is counted in each bucket that it passes. Where no key
// has passed, the search is over (after Knuth, volume 3, section 6.4, exercise 43: buckets).
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "callboard/core/atomics.hpp"

namespace callboard {

class SlotIndex {
public:
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    SlotIndex() : buckets_(2) {}

    // The slot with this hash for which `is_it` is true, or `none`.
    template <class IsIt>
    std::uint32_t find(std::uint64_t hash, const IsIt& is_it) const {
        std::size_t i = home(hash);
        do {
            const Bucket& bucket = buckets_[i];
            for (auto found = bucket.match(hash); found != 0; found &= found - 1)
                if (is_it(bucket.slots[place(found)])) return bucket.slots[place(found)];
            if (__builtin_expect(bucket.passed == 0, 1)) return none;
            i = next(i);
        } while (i != home(hash));  // of few buckets, all may have been passed
        return none;
    }

    // Makes room for one more; `hash_of` returns a slot's hash. Throws std::bad_alloc. No other function here throws.
    template <class HashOf>
    void make_room(const HashOf& hash_of) {
        if (8 * (count_ + 1) > 5 * places * buckets_.size()) grow(hash_of);
    }

    // There is room.
    void insert(std::uint64_t hash, std::uint32_t slot) {
        assert(slot != none && 8 * (count_ + 1) <= 5 * places * buckets_.size() && "there is room");
        for (std::size_t i = home(hash);; i = next(i)) {
            Bucket& bucket = buckets_[i];
            if (const auto free = ~bucket.tags & highest) {
                bucket.tags |= tag(hash) << 8 * place(free);
                bucket.slots[place(free)] = slot;
                break;
            }
            assert(bucket.passed != ~std::uint32_t{0});
            ++bucket.passed;
        }
        ++count_;
    }

    // It is there.
    void erase(std::uint64_t hash, std::uint32_t slot) {
        assert(count_ != 0);
        --count_;
        for (std::size_t i = home(hash);; i = next(i)) {
            Bucket& bucket = buckets_[i];
            for (auto found = bucket.match(hash); found != 0; found &= found - 1) {
                if (bucket.slots[place(found)] != slot) continue;
                bucket.tags &= ~(std::uint64_t{0xff} << 8 * place(found));
                return;
            }
            assert(bucket.passed != 0 && "it is there");
            --bucket.passed;
        }
    }

    // A find() with this hash will come. Inlined: GCC 12 takes a function that only prefetches for one without effect,
    // and drops calls of it.
    __attribute__((always_inline)) void prefetch(std::uint64_t hash) const {
        __builtin_prefetch(&buckets_[home(hash)]);
    }

    // The slot that find() will most likely look at first, or any other: for a caller that wants to fetch its
    // memory early.
    std::uint32_t guess(std::uint64_t hash) const {
        const Bucket& bucket = buckets_[home(hash)];
        return bucket.slots[place(bucket.match(hash) | std::uint64_t{1} << 63)];
    }

private:
    static constexpr std::size_t places = 8;
    static constexpr std::uint64_t lowest = 0x0101010101010101, highest = lowest << 7;

    static std::uint64_t tag(std::uint64_t hash) { return ((hash >> 25) & 0x7f) | 0x80; }
    static unsigned place(std::uint64_t bits) { return static_cast<unsigned>(__builtin_ctzll(bits)) / 8; }

    struct alignas(cache_line) Bucket {
        std::uint64_t tags{0};  // a byte for each place; 0 where it is free
        std::uint32_t slots[places]{};
        std::uint32_t passed{0};  // keys whose search goes on behind this bucket

        // The highest bit of each byte that is the hash's tag. Exactly the bytes of x that are 0 carry nothing.
        std::uint64_t match(std::uint64_t hash) const {
            const std::uint64_t x = tags ^ (lowest * tag(hash));
            return ~(((x & ~highest) + ~highest) | x | ~highest);
        }
    };

    std::size_t home(std::uint64_t hash) const { return hash >> shift_; }
    std::size_t next(std::size_t i) const { return (i + 1) & (buckets_.size() - 1); }

    template <class HashOf>
    void grow(const HashOf& hash_of) {
        std::vector<Bucket> old(2 * buckets_.size());
        old.swap(buckets_);
        assert(shift_ != 0 && (buckets_.size() & (buckets_.size() - 1)) == 0);
        --shift_;
        count_ = 0;
        for (const Bucket& bucket : old)
            for (auto used = bucket.tags & highest; used != 0; used &= used - 1) {
                const std::uint32_t slot = bucket.slots[place(used)];
                insert(hash_of(slot), slot);
            }
    }

    std::vector<Bucket> buckets_;  // a power of two
    std::size_t count_{0};
    unsigned shift_{63};  // 64 - log2 of the number of buckets
};

}  // namespace callboard
