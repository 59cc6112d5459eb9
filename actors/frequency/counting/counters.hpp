// Space Saving by one thread at a time: Metwally, Agrawal and El Abbadi 2006; Das et al. 2009, algorithm 2.1.
//
// At most `capacity` keys are counted. A key that is not among them takes the counter with the least count
// over, and begins with that count: it may have come so often unseen. Hence, of N elements:
//   1. The counts add up to N; in one that was merged, to at most N.
//   2. No count is below the key's true one, and none above it by more than `error`, at most N / capacity.
//   3. A key without a counter came at most unseen() times, which is at most N / capacity.
// So with 1 / epsilon counters every key that came more than epsilon N times has one.
//
// The paper keeps counters in the order of their counts, in a list of buckets (its stream summary), which
// each element changes. Here an element that has a counter adds to it, and nothing else; least.hpp
// finds the least one when it is wanted, and a query looks at all counts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "callboard/frequency/counting/index.hpp"
#include "callboard/frequency/counting/least.hpp"

namespace callboard {

template <class Keys>
class Counters {
public:
    using Probe = typename Keys::Probe;
    using Kept = typename Keys::Kept;

    // Equal keys have equal hashes, made with `seed`.
    Counters(std::uint32_t capacity, std::uint64_t seed) : capacity_(capacity), seed_(seed) {}
    Counters(const Counters&) = delete;
    ~Counters() {
        for (Entry& entry : entries_) Keys::drop(entry.key);
    }

    std::uint64_t hash(const Probe& key) const { return Keys::hash(seed_, key); }

    // The key came `weight` times, which is not 0. The total stays below 2**63: that is for the caller to see to.
    void add(const Probe& key, std::uint64_t weight) { add(key, hash(key), weight); }
    void add(const Probe& key, std::uint64_t hash, std::uint64_t weight) { add_at(find(key, hash), key, hash, weight); }

    // The same where it is known what find() says. Returns the key's slot.
    std::uint32_t add_at(std::uint32_t slot, const Probe& key, std::uint64_t hash, std::uint64_t weight) {
        if (__builtin_expect(slot != SlotIndex::none, 1)) entries_[slot].count += weight;
        else slot = begin(key, hash, weight);
        total_ += weight;
        return slot;
    }

    // Keys that came once, in lots: memory that one wants is fetched while others are counted.
    void add_array(const Probe* keys, std::size_t count) {
        constexpr std::size_t lot = 16;
        std::uint64_t hashes[lot];
        Probe own[lot];
        for (const Probe* const end = keys + count; keys != end;) {
            const std::size_t many = std::min(lot, static_cast<std::size_t>(end - keys));
            for (std::size_t i = 0; i < many; ++i) {
                own[i] = keys[i];  // once: another thread may write to the array
                index_.prefetch(hashes[i] = hash(own[i]));
            }
            for (std::size_t i = 0; i < many; ++i) {
                const std::uint32_t slot = index_.guess(hashes[i]);
                if (slot != SlotIndex::none) __builtin_prefetch(&entries_[slot]);
            }
            for (std::size_t i = 0; i < many; ++i) add(own[i], hashes[i], 1);
            keys += many;
        }
    }

    // The slot of a key, or SlotIndex::none.
    std::uint32_t find(const Probe& key) const { return find(key, hash(key)); }
    std::uint32_t find(const Probe& key, std::uint64_t hash) const {
        return index_.find(hash, [&](std::uint32_t slot) { return Keys::equal(entries_[slot].key, key); });
    }

    std::uint32_t size() const { return static_cast<std::uint32_t>(entries_.size()); }
    std::uint32_t capacity() const { return capacity_; }
    std::uint64_t total() const { return total_; }
    const Kept& key_of(std::uint32_t slot) const { return entries_[slot].key; }
    std::uint64_t count_of(std::uint32_t slot) const { return entries_[slot].count; }
    std::uint64_t error_of(std::uint32_t slot) const { return errors_[slot]; }

    // How often a key without a counter may have come.
    std::uint64_t unseen() {
        if (size() < capacity_) return 0;
        const std::uint32_t slot = pop_least();
        queue_.push(slot, entries_[slot].count);
        return entries_[slot].count;
    }

    // The slots with the `most` greatest counts, or all; the greatest first, and of equals the one that is older.
    std::vector<std::uint32_t> top(std::size_t most) const {
        std::vector<std::uint32_t> best;
        if (most == 0) return best;
        const auto order = [this](std::uint32_t a, std::uint32_t b) { return is_before(a, b); };
        // A heap of the best so far, with the least of them on top; few counts are above that.
        best.reserve(std::min<std::size_t>(most, size()));
        std::uint64_t bar = 0;
        for (std::uint32_t slot = 0; slot < size(); ++slot) {
            if (best.size() < most) {
                best.push_back(slot);
                std::push_heap(best.begin(), best.end(), order);
                bar = entries_[best.front()].count;
            } else if (__builtin_expect(entries_[slot].count > bar, 0)) {
                std::pop_heap(best.begin(), best.end(), order);
                best.back() = slot;
                std::push_heap(best.begin(), best.end(), order);
                bar = entries_[best.front()].count;
            }
        }
        std::sort_heap(best.begin(), best.end(), order);
        return best;
    }

    // The slots with greater counts than that; the greatest first, and of equals the one that is older.
    std::vector<std::uint32_t> above(std::uint64_t bar) const {
        std::vector<std::uint32_t> found;
        for (std::uint32_t slot = 0; slot < size(); ++slot)
            if (entries_[slot].count > bar) found.push_back(slot);
        std::sort(found.begin(), found.end(), [this](auto a, auto b) { return is_before(a, b); });
        return found;
    }

    // A counter as it was, of a key that has none; there is room. Returns its slot. And what was counted altogether.
    std::uint32_t put(const Probe& key, std::uint64_t hash, std::uint64_t count, std::uint64_t error) {
        return place(key, hash, count, error);
    }
    void set_total(std::uint64_t total) { total_ = total; }

private:
    struct Entry {
        Kept key;
        std::uint64_t count;
    };

    bool is_before(std::uint32_t a, std::uint32_t b) const {
        return entries_[a].count != entries_[b].count ? entries_[a].count > entries_[b].count : a < b;
    }

    std::uint32_t place(const Probe& key, std::uint64_t hash, std::uint64_t count, std::uint64_t error) {
        const std::uint32_t slot = size();
        if (slot == entries_.capacity()) {  // what can fail for lack of memory comes first
            const std::size_t room = std::min<std::size_t>(2 * std::size_t{slot} + 16, capacity_);
            errors_.reserve(room);
            entries_.reserve(room);
        }
        index_.make_room();
        queue_.make_room(entries_.capacity());
        entries_.push_back({Keys::keep(key, hash), count});
        errors_.push_back(error);
        queue_.push(slot, count);
        index_.insert(hash, slot);
        return slot;
    }

    __attribute__((noinline)) std::uint32_t begin(const Probe& key, std::uint64_t hash, std::uint64_t weight) {
        if (size() < capacity_) return place(key, hash, weight, 0);
        const std::uint32_t slot = pop_least();
        Entry& entry = entries_[slot];
        const std::uint64_t old_hash = Keys::hash_of(seed_, entry.key);
        try {
            Keys::replace(entry.key, key, hash);
        } catch (...) {
            queue_.push(slot, entry.count);
            throw;
        }
        index_.erase(old_hash, slot);
        index_.insert(hash, slot);
        errors_[slot] = entry.count;
        entry.count += weight;
        queue_.push(slot, entry.count);
        return slot;
    }

    std::uint32_t pop_least() {
        return queue_.pop([this](std::uint32_t slot) { return entries_[slot].count; });
    }

    const std::uint32_t capacity_;
    const std::uint64_t seed_;
    std::uint64_t total_{0};
    std::vector<Entry> entries_;
    std::vector<std::uint64_t> errors_;
    SlotIndex index_;
    LeastQueue queue_;
};

}  // namespace callboard
