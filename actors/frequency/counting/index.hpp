// Where keys are counted: a table from hashes to slots.
//
// Open addressing with linear probing, and deletion that closes the gap (Knuth, volume 3, section 6.4,
// algorithms L and R): no tombstones, so a table in which most keys come and go stays as fast as a new one.
// A place holds a slot and the upper half of its key's hash, from which its home place follows: neither
// probing nor closing a gap looks at keys, but for those whose half is the same.
#pragma once

#include <cstdint>
#include <vector>

namespace callboard {

class SlotIndex {
public:
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    SlotIndex() : places_(smallest) {}

    // The slot with this hash for which `is_it` is true, or `none`.
    template <class IsIt>
    std::uint32_t find(std::uint64_t hash, const IsIt& is_it) const {
        const std::uint32_t tag = tag_of(hash);
        for (auto i = home(tag);; i = next(i)) {
            const Place& place = places_[i];
            if (place.slot == none) return none;
            if (place.tag == tag && is_it(place.slot)) return place.slot;
        }
    }

    // For one more. Throws std::bad_alloc, and nothing else here does.
    void make_room() {
        if (2 * (count_ + 1) > places_.size()) grow();
    }

    // There is room.
    void insert(std::uint64_t hash, std::uint32_t slot) {
        put({tag_of(hash), slot});
        ++count_;
    }

    // It is there.
    void erase(std::uint64_t hash, std::uint32_t slot) {
        auto gap = home(tag_of(hash));
        while (places_[gap].slot != slot) gap = next(gap);
        // Who stands behind the gap, and not before its own home if it moves there, closes it.
        for (auto i = next(gap); places_[i].slot != none; i = next(i)) {
            if (distance(home(places_[i].tag), i) < distance(gap, i)) continue;
            places_[gap] = places_[i];
            gap = i;
        }
        places_[gap].slot = none;
        --count_;
    }

    // A find() with this hash will come.
    void prefetch(std::uint64_t hash) const { __builtin_prefetch(&places_[home(tag_of(hash))]); }

    // The slot that stands in the hash's home place, or any other, for whoever wants to fetch its memory early.
    std::uint32_t guess(std::uint64_t hash) const { return places_[home(tag_of(hash))].slot; }

private:
    struct Place {
        std::uint32_t tag{0}, slot{none};
    };
    static constexpr std::size_t smallest = 16;

    static std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32); }
    std::size_t home(std::uint32_t tag) const { return tag >> shift_; }
    std::size_t next(std::size_t i) const { return (i + 1) & (places_.size() - 1); }
    std::size_t distance(std::size_t from, std::size_t to) const { return (to - from) & (places_.size() - 1); }

    void put(Place place) {
        auto i = home(place.tag);
        while (places_[i].slot != none) i = next(i);
        places_[i] = place;
    }

    void grow() {
        std::vector<Place> old(2 * places_.size());
        old.swap(places_);
        --shift_;
        for (const Place& place : old)
            if (place.slot != none) put(place);
    }

    std::vector<Place> places_;  // a power of two
    std::size_t count_{0};
    unsigned shift_{28};  // 32 - log2 of the number of places
};

}  // namespace callboard
