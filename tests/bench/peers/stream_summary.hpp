// Space Saving with the stream summary of its authors: Metwally, Agrawal and El Abbadi 2006, section 3.
//
// Counters of one count hang in a list on a bucket of that count, and buckets in a list in the order of their
// counts. Each element moves its counter to the next bucket, which is made if need be, and lets go
// of the one that is empty. So at any moment all are in order, in constant time for an element of weight 1. Beside it,
// callboard/frequency/counting/counters.hpp keeps no order; the table from keys to counters is the same.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "callboard/core/memory/slot_index.hpp"

namespace callboard {

template <class Keys>
class StreamSummary {
public:
    using Probe = typename Keys::Probe;

    StreamSummary(std::uint32_t capacity, std::uint64_t seed) : capacity_(capacity), seed_(seed) {
        counters_.reserve(capacity);
    }
    StreamSummary(const StreamSummary&) = delete;
    ~StreamSummary() {
        for (Counter& counter : counters_) Keys::drop(counter.key);
        for (Bucket* bucket = least_; bucket != nullptr;) delete std::exchange(bucket, bucket->next);
        for (Bucket* bucket = spare_; bucket != nullptr;) delete std::exchange(bucket, bucket->next);
    }

    void add(const Probe& key, std::uint64_t weight) {
        const std::uint64_t hash = Keys::hash(seed_, key);
        const std::uint32_t slot =
            index_.find(hash, [&](std::uint32_t slot) { return Keys::equal(counters_[slot].key, key); });
        if (slot != SlotIndex::none) return increment(counters_[slot], weight);
        if (counters_.size() < capacity_) {
            index_.make_room([this](std::uint32_t slot) { return Keys::hash_of(seed_, counters_[slot].key); });
            index_.insert(hash, static_cast<std::uint32_t>(counters_.size()));
            counters_.push_back({{}, 0, nullptr, nullptr, nullptr});
            Keys::replace(counters_.back().key, key, hash);
            return hang(counters_.back(), nullptr, weight);
        }
        Counter& counter = *least_->first;
        const auto old = static_cast<std::uint32_t>(&counter - counters_.data());
        index_.erase(Keys::hash_of(seed_, counter.key), old);
        Keys::replace(counter.key, key, hash);
        index_.insert(hash, old);
        counter.error = least_->count;
        increment(counter, weight);
    }

    // The counts, greatest first.
    std::vector<std::uint64_t> counts() const {
        std::vector<std::uint64_t> all;
        for (Bucket* bucket = least_; bucket != nullptr; bucket = bucket->next)
            for (Counter* counter = bucket->first; counter != nullptr; counter = counter->next)
                all.insert(all.begin(), bucket->count);
        return all;
    }

private:
    struct Bucket;
    struct Counter {
        typename Keys::Kept key;
        std::uint64_t error;
        Bucket* bucket;
        Counter *previous, *next;
    };
    struct Bucket {
        std::uint64_t count;
        Bucket *previous, *next;
        Counter* first;
    };

    void increment(Counter& counter, std::uint64_t weight) {
        Bucket* const bucket = counter.bucket;
        if (counter.previous != nullptr) counter.previous->next = counter.next;
        else bucket->first = counter.next;
        if (counter.next != nullptr) counter.next->previous = counter.previous;
        hang(counter, bucket, bucket->count + weight);
        if (bucket->first == nullptr) let_go(bucket);
    }

    // Into the bucket of `count`, which is behind `bucket`.
    void hang(Counter& counter, Bucket* bucket, std::uint64_t count) {
        Bucket* following = bucket == nullptr ? least_ : bucket->next;
        while (following != nullptr && following->count < count) {
            bucket = following;
            following = following->next;
        }
        if (following == nullptr || following->count != count) {
            Bucket* made = spare_ != nullptr ? std::exchange(spare_, spare_->next) : new Bucket;
            *made = {count, bucket, following, nullptr};
            (bucket == nullptr ? least_ : bucket->next) = made;
            if (following != nullptr) following->previous = made;
            following = made;
        }
        counter.bucket = following;
        counter.previous = nullptr;
        counter.next = following->first;
        if (following->first != nullptr) following->first->previous = &counter;
        following->first = &counter;
    }

    void let_go(Bucket* bucket) {
        (bucket->previous == nullptr ? least_ : bucket->previous->next) = bucket->next;
        if (bucket->next != nullptr) bucket->next->previous = bucket->previous;
        bucket->next = std::exchange(spare_, bucket);
    }

    const std::uint32_t capacity_;
    const std::uint64_t seed_;
    std::vector<Counter> counters_;
    SlotIndex index_;
    Bucket *least_{nullptr}, *spare_{nullptr};
};

}  // namespace callboard
