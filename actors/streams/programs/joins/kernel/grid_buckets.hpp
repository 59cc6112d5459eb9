// The stored rows of one side that are still seen, in buckets. A bucket without rows does not exist.
//
// A bucket has a slot for as long as it has rows, by which its oldest row is removed without a search.
// One thread at a time. It waits for nobody.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "callboard/core/memory/slot_index.hpp"
#include "callboard/streams/programs/joins/comparing/comparison.hpp"
#include "callboard/streams/programs/joins/kernel/bucket_rows.hpp"

namespace callboard {

class GridBuckets {
public:
    explicit GridBuckets(const JoinColumns& columns) : pieces_(columns) {}
    GridBuckets(const GridBuckets&) = delete;
    ~GridBuckets() {
        for (Entry& entry : entries_) pieces_.clear(entry.rows);
    }

    // Prefetches the memory for a bucket's match() or push(): the table's line, then its entry, then its rows.
    __attribute__((always_inline)) void prefetch(std::uint64_t hash) const { index_.prefetch(hash); }
    __attribute__((always_inline)) void prefetch_entry(std::uint64_t hash) const {
        __builtin_prefetch(entries_.data() + index_.guess(hash));
    }
    __attribute__((always_inline)) void prefetch_rows(std::uint64_t hash) const {
        const std::uint32_t slot = find(hash);
        if (slot != SlotIndex::none) pieces_.prefetch_columns(entries_[slot].rows);
    }
    __attribute__((always_inline)) void prefetch_end(std::uint64_t hash) const {
        const std::uint32_t slot = find(hash);
        if (slot != SlotIndex::none) pieces_.prefetch_end(entries_[slot].rows);
    }

    // Also the memory that a pop() will use.
    __attribute__((always_inline)) void prefetch_slot(std::uint32_t slot) const {
        __builtin_prefetch(entries_.data() + slot);
    }
    __attribute__((always_inline)) void prefetch_bucket(std::uint32_t slot) const {
        index_.prefetch(entries_[slot].hash);
        __builtin_prefetch(entries_[slot].rows.piece, 1);  // which the next new bucket gets, if this one ends
    }

    // Appends a row to its bucket. Returns the bucket's slot. Throws std::bad_alloc.
    std::uint32_t push(std::uint64_t hash, std::uint64_t number, const void* const* columns, std::size_t row) {
        std::uint32_t slot = find(hash);
        if (slot != SlotIndex::none) {
            pieces_.push(entries_[slot].rows, number, columns, row);
            return slot;
        }
        index_.make_room([this](std::uint32_t slot) { return entries_[slot].hash; });
        if (free_ == SlotIndex::none) {
            entries_.push_back({free_, {}});
            free_ = static_cast<std::uint32_t>(entries_.size() - 1);
        }
        slot = free_;
        assert(slot < entries_.size() && entries_[slot].rows.count() == 0 && "a free slot has no rows");
        Entry& entry = entries_[slot];
        pieces_.push(entry.rows, number, columns, row);
        free_ = static_cast<std::uint32_t>(entry.hash);  // of a free slot, the next one
        entry.hash = hash;
        index_.insert(hash, slot);
        ++count_;
        return slot;
    }

    // Removes a bucket's oldest row. Throws std::bad_alloc.
    void pop(std::uint32_t slot) {
        Entry& entry = entries_[slot];
        assert(slot < entries_.size() && count_ != 0);
        pieces_.pop(entry.rows);
        if (entry.rows.count() != 0) return;
        index_.erase(entry.hash, slot);
        entry.hash = free_;
        free_ = slot;
        --count_;
    }

    // Calls `found(number)` for each row of a bucket that is in all of a predicate's intervals, in order. Returns how
    // many rows the bucket has.
    template <class Found>
    std::uint32_t match(std::uint64_t hash, const JoinPredicate& predicate, const Interval* intervals,
               const BlockComparison& comparison, const Found& found) const {
        const std::uint32_t slot = find(hash);
        if (slot == SlotIndex::none) return 0;
        const BucketRows& rows = entries_[slot].rows;
        const std::uint64_t* const numbers = pieces_.numbers(rows);
        for (std::uint32_t at = rows.begin; at < rows.end; at += 64) {
            const std::uint32_t count = std::min(std::uint32_t{64}, rows.end - at);
            std::uint64_t mask = ~std::uint64_t{0};
            for (std::uint32_t term = 0; mask != 0 && term < predicate.count; ++term)
                mask &= mask_of(rows, at, count, term, predicate.terms[term].type, intervals[term], comparison);
            for (; mask != 0; mask &= mask - 1) found(numbers[at + static_cast<std::uint32_t>(__builtin_ctzll(mask))]);
        }
        return rows.count();
    }

    std::size_t count() const { return count_; }
    std::size_t bytes() const { return pieces_.bytes() + entries_.capacity() * sizeof(Entry); }

private:
    struct Entry {
        std::uint64_t hash;
        BucketRows rows;
    };

    std::uint32_t find(std::uint64_t hash) const {
        return index_.find(hash, [&](std::uint32_t slot) { return entries_[slot].hash == hash; });
    }

    std::uint64_t mask_of(const BucketRows& rows, std::uint32_t at, std::uint32_t count, std::uint32_t term,
                          NumberType type, const Interval& interval, const BlockComparison& comparison) const {
        const unsigned char* const values = pieces_.column(rows, term) + std::size_t{at} * size_of(type);
        if (count < 64) return comparison.rows_of(type)(values, count, interval);
        std::uint64_t mask;
        comparison.words_of(type)(values, interval, 1, &mask);
        return mask;
    }

    PieceArena pieces_;
    std::vector<Entry> entries_;
    std::uint32_t free_{SlotIndex::none};  // a list of slots, linked by their hashes
    std::size_t count_{0};
    SlotIndex index_;
};

}  // namespace callboard
