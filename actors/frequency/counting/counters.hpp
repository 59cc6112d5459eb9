// Space Saving by one thread at a time: Metwally, Agrawal and El Abbadi 2006; Das et al. 2009, algorithm 2.1.
//
// At most `capacity` keys have counters. A key without one takes over the counter with the least count, and begins with
// that count, because it may have come so often unseen. Hence, of N elements:
//   1. The counts add up to N; in one that was merged, to at most N.
//   2. No count is below the key's true one, or above it by more than `error`, which is at most N / capacity.
//   3. A key without a counter came at most unseen() times: the greatest count that was taken over, which is at most
//      N / capacity.
// So with 1 / epsilon counters every key that came more than epsilon N times has one.
//
// The paper keeps counters in the order of their counts, in a list of buckets (its stream summary), which each element
// changes. Here an element whose key has a counter only adds to it. least.hpp finds the least count when it is needed,
// and a query looks at all counts.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "callboard/core/memory/slot_index.hpp"
#include "callboard/frequency/counting/least.hpp"

namespace callboard {

template <class Keys>
class Counters {
public:
    using Probe = typename Keys::Probe;
    using Kept = typename Keys::Kept;

    // Equal keys have equal hashes, made with `seed`. grow() may raise the capacity to `most`.
    Counters(std::uint32_t capacity, std::uint64_t seed) : Counters(capacity, seed, capacity) {}
    Counters(std::uint32_t capacity, std::uint64_t seed, std::uint32_t most)
        : capacity_(capacity), most_(most), seed_(seed) {
        assert(capacity <= most);
    }
    Counters(const Counters&) = delete;
    ~Counters() {
        for (Entry& entry : entries_) Keys::drop(entry.key);
    }

    std::uint64_t hash(const Probe& key) const { return Keys::hash(seed_, key); }

    // The key came `weight` times, which is not 0. The caller ensures that the total stays below 2**63.
    void add(const Probe& key, std::uint64_t weight) { add(key, hash(key), weight); }
    void add(const Probe& key, std::uint64_t hash, std::uint64_t weight) { add_at(find(key, hash), key, hash, weight); }

    // The same for a caller that has called find(). Returns the key's slot.
    std::uint32_t add_at(std::uint32_t slot, const Probe& key, std::uint64_t hash, std::uint64_t weight) {
        assert(weight != 0 && (total_ + weight) >> 63 == 0);
        if (__builtin_expect(slot != SlotIndex::none, 1)) entries_[slot].count += weight;
        else slot = begin(hash, weight, [&](Kept& kept) { Keys::replace(kept, key, hash); });
        total_ += weight;
        return slot;
    }

    // The same for a key in separate memory, which is exchanged for that of the key whose counter it takes over.
    // False, and not counted: it has no counter, there is none left, and the least count is above `limit`.
    bool add_kept(Kept& key, std::uint64_t hash, std::uint64_t weight, std::uint64_t limit) {
        assert(weight != 0 && (total_ + weight) >> 63 == 0);
        std::uint32_t slot = find(Keys::probe(key), hash);
        if (slot != SlotIndex::none) entries_[slot].count += weight;
        else slot = begin(hash, weight, [&](Kept& kept) { std::swap(kept, key); }, limit);
        if (slot == SlotIndex::none) return false;
        total_ += weight;
        return true;
    }

    // Keys that came once each, in batches: the memory for one is fetched while others are counted.
    void add_array(const Probe* keys, std::size_t count) {
        constexpr std::size_t batch = 16;
        std::uint64_t hashes[batch];
        std::uint32_t guesses[batch];
        Probe own[batch];
        for (const Probe* const end = keys + count; keys != end;) {
            const std::size_t many = std::min(batch, static_cast<std::size_t>(end - keys));
            for (std::size_t i = 0; i < many; ++i) {
                own[i] = keys[i];  // once: another thread may write to the array
                index_.prefetch(hashes[i] = hash(own[i]));
            }
            for (std::size_t i = 0; i < many; ++i)
                __builtin_prefetch(entries_.data() + (guesses[i] = index_.guess(hashes[i])));
            for (std::size_t i = 0; i < many; ++i) {
                if (__builtin_expect(is_counted_at(guesses[i], own[i]), 1)) {
                    ++entries_[guesses[i]].count;
                    ++total_;
                } else {
                    add(own[i], hashes[i], 1);
                }
            }
            keys += many;
        }
    }

    // The slot of a key, or SlotIndex::none.
    std::uint32_t find(const Probe& key) const { return find(key, hash(key)); }
    std::uint32_t find(const Probe& key, std::uint64_t hash) const {
        return index_.find(hash, [&](std::uint32_t slot) { return Keys::equal(entries_[slot].key, key); });
    }

    void prefetch(std::uint64_t hash) const { index_.prefetch(hash); }
    void prefetch_entry(std::uint64_t hash) const { __builtin_prefetch(entries_.data() + index_.guess(hash)); }

    // Counters are numbered by slots. A slot whose counter was given up has count 0.
    std::uint32_t slots() const { return static_cast<std::uint32_t>(entries_.size()); }
    std::uint32_t size() const { return size_; }
    std::uint32_t capacity() const { return capacity_; }
    std::uint64_t total() const { return total_; }
    const Kept& key_of(std::uint32_t slot) const { return entry_of(slot).key; }
    std::uint64_t count_of(std::uint32_t slot) const { return entry_of(slot).count; }
    std::uint64_t error_of(std::uint32_t slot) const {
        assert(errors_[slot] < entry_of(slot).count);
        return errors_[slot];
    }

    // How often a key without a counter may have come.
    std::uint64_t unseen() const { return lost_; }

    // The least count, also that of a key for which there is room. Without keys and room it is the greatest number.
    std::uint64_t least() {
        std::uint64_t least = size() < capacity_ ? lost_ + 1 : ~std::uint64_t{0};
        if (size() == 0) return least;
        const std::uint32_t slot = pop_least();
        queue_.push(slot, entries_[slot].count);
        return std::min(least, entries_[slot].count);
    }

    // There may be one more counter. Its first key begins at `begin` or above.
    void grow(std::uint64_t begin = 0) {
        assert(capacity_ < most_);
        ++capacity_;
        lost_ = std::max(lost_, begin);
    }

    // There may be one counter fewer: an unused one goes, or else the one with the least count. Returns that count.
    std::uint64_t give_up() {
        assert(capacity_ != 0);
        --capacity_;
        if (size() <= capacity_) return 0;
        const std::uint32_t slot = pop_least();
        Entry& entry = entries_[slot];
        index_.erase(Keys::hash_of(seed_, entry.key), slot);
        errors_[slot] = std::exchange(free_, slot);
        --size_;
        lost_ = std::max(lost_, entry.count);
        asked_ = 0;
        return std::exchange(entry.count, 0);
    }

    // The slots with the `most` greatest counts, or all; the greatest first, and of equals the one that is older.
    // Counts only grow, so no fewer are at the last answer's least count now: few others are looked at twice.
    std::vector<std::uint32_t> top(std::size_t most) {
        std::vector<std::uint32_t> best;
        if (most == 0) return best;
        const auto order = [this](std::uint32_t a, std::uint32_t b) { return is_before(a, b); };
        const std::size_t room = std::min<std::size_t>(2 * std::min<std::size_t>(most, size()) + 16, size());
        best.reserve(room);
        std::uint64_t bar = most <= asked_ ? bar_ : 0;
        each_above(bar, [&](std::uint32_t slot) {
            if (best.size() == room && best.size() > most) {
                const auto middle = best.begin() + static_cast<std::ptrdiff_t>(most);
                std::nth_element(best.begin(), middle - 1, best.end(), order);
                best.erase(middle, best.end());
                bar = entries_[best.back()].count;
                if (entries_[slot].count <= bar) return;
            }
            best.push_back(slot);
        });
        std::sort(best.begin(), best.end(), order);
        if (best.size() > most) best.resize(most);
        asked_ = most;
        bar_ = best.size() == most ? entries_[best.back()].count - 1 : 0;
        return best;
    }

    // The slots with greater counts than that; the greatest first, and of equals the one that is older.
    std::vector<std::uint32_t> above(std::uint64_t bar) const {
        std::vector<std::uint32_t> found;
        each_above(bar, [&](std::uint32_t slot) { found.push_back(slot); });
        std::sort(found.begin(), found.end(), [this](auto a, auto b) { return is_before(a, b); });
        return found;
    }

    // A counter of another summary, for a key that has none; there is room. Returns its slot. Then the total, and how
    // often a key without a counter may have come.
    std::uint32_t put(const Probe& key, std::uint64_t hash, std::uint64_t count, std::uint64_t error) {
        return place(hash, count, error, [&](Kept& kept) { Keys::replace(kept, key, hash); });
    }
    void set_total(std::uint64_t total) {
        assert(total >> 63 == 0);
        total_ = total;
    }
    void set_unseen(std::uint64_t unseen) {
        assert(unseen >= lost_ && "what was lost stays lost");
        lost_ = unseen;
    }

private:
    struct Entry {
        Kept key;
        std::uint64_t count;
    };

    const Entry& entry_of(std::uint32_t slot) const {
        assert(slot < entries_.size());
        return entries_[slot];
    }

    bool is_counted_at(std::uint32_t slot, const Probe& key) const {
        return slot < entries_.size() && entries_[slot].count != 0 && Keys::equal(entries_[slot].key, key);
    }

    bool is_before(std::uint32_t a, std::uint32_t b) const {
        return entries_[a].count != entries_[b].count ? entries_[a].count > entries_[b].count : a < b;
    }

    // Calls `found(slot)`, oldest first, for the counts above the bar, which `found` may raise.
    template <class Found>
    void each_above(const std::uint64_t& bar, const Found& found) const {
        constexpr std::uint32_t batch = 8;
        const auto look = [&](std::uint32_t begin, std::uint32_t end) {
            for (std::uint32_t slot = begin; slot < end; ++slot)
                if (entries_[slot].count > bar) found(slot);
        };
        std::uint32_t begin = 0;
        for (; slots() - begin >= batch; begin += batch) {
            std::uint64_t above = 0;  // its highest bit: counts are below 2**63
            for (std::uint32_t i = 0; i < batch; ++i) above |= bar - entries_[begin + i].count;
            if (__builtin_expect(above >> 63 != 0, 0)) look(begin, begin + batch);
        }
        look(begin, slots());
    }

    // A counter for a key that has none; there is room. `settle` puts the key in its place, and may throw.
    template <class Settle>
    std::uint32_t place(std::uint64_t hash, std::uint64_t count, std::uint64_t error, const Settle& settle) {
        assert(size_ < capacity_ && error < count && count >> 63 == 0);
        std::uint32_t slot = free_;
        if (slot == SlotIndex::none) {
            slot = slots();
            if (slot == entries_.capacity()) {  // what can fail for lack of memory comes first
                const std::size_t wanted = std::min<std::size_t>(2 * std::size_t{slot} + 16, most_);
                const std::size_t room = std::max(slot + std::size_t{1}, wanted);
                errors_.reserve(room);
                entries_.reserve(room);
            }
            index_.make_room([this](std::uint32_t slot) { return Keys::hash_of(seed_, entries_[slot].key); });
            queue_.make_room(entries_.capacity());
            Kept kept{};
            settle(kept);
            entries_.push_back({kept, count});
            errors_.push_back(error);
        } else {
            assert(entries_[slot].count == 0 && "it was given up");
            settle(entries_[slot].key);
            free_ = static_cast<std::uint32_t>(errors_[slot]);
            entries_[slot].count = count;
            errors_[slot] = error;
        }
        ++size_;
        // Those that come next may be as low.
        if (count < queue_.least())
            queue_.lower(std::min(count, error + 1), [this](std::uint32_t slot) { return entries_[slot].count; });
        queue_.push(slot, count);
        index_.insert(hash, slot);
        return slot;
    }

    template <class Settle>
    __attribute__((noinline)) std::uint32_t begin(std::uint64_t hash, std::uint64_t weight, const Settle& settle,
                                                  std::uint64_t limit = ~std::uint64_t{0}) {
        if (size() < capacity_) return place(hash, lost_ + weight, lost_, settle);
        if (size() == 0 || limit == 0) return SlotIndex::none;
        const std::uint32_t slot = pop_least();
        if (entries_[slot].count > limit) {
            queue_.push(slot, entries_[slot].count);
            return SlotIndex::none;
        }
        Entry& entry = entries_[slot];
        const std::uint64_t old_hash = Keys::hash_of(seed_, entry.key);
        try {
            settle(entry.key);
        } catch (...) {
            queue_.push(slot, entry.count);
            throw;
        }
        index_.erase(old_hash, slot);
        index_.insert(hash, slot);
        assert(entry.count <= limit && entry.count != 0);
        errors_[slot] = entry.count;
        lost_ = std::max(lost_, entry.count);
        entry.count += weight;
        queue_.push(slot, entry.count);
        return slot;
    }

    // There is one. The memory of the next two is prefetched.
    std::uint32_t pop_least() {
        assert(size_ != 0);
        const std::uint32_t slot = queue_.pop([this](std::uint32_t slot) { return entries_[slot].count; });
        queue_.look_ahead([this](std::uint32_t next) { index_.prefetch(Keys::hash_of(seed_, entries_[next].key)); },
                          [this](std::uint32_t after) { __builtin_prefetch(&entries_[after]); });
        return slot;
    }

    std::uint32_t capacity_;
    std::uint32_t size_{0};
    std::uint32_t free_{SlotIndex::none};  // a list of slots that were given up, linked by their errors
    const std::uint32_t most_;
    std::size_t asked_{0};  // the last answer had this many keys with the greatest counts, all of them above bar_
    std::uint64_t bar_{0};
    const std::uint64_t seed_;
    std::uint64_t total_{0};
    std::uint64_t lost_{0};             // the greatest count of a key that lost its counter
    std::vector<Entry> entries_;        // those of free slots have count 0
    std::vector<std::uint64_t> errors_;
    SlotIndex index_;
    LeastQueue queue_;
};

}  // namespace callboard
