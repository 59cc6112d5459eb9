// The counts of one stream by itself: a table of keys, each in the one place that its hash names.
//
// A frequent key stays and only its count grows; two that fight for a place push each other out, with what
// they have counted until then. So of a skewed stream few elements get past it, in bulk, and of a flat one all.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>

namespace callboard {

template <class Keys>
class FrontCache {
public:
    using Probe = typename Keys::Probe;
    using Kept = typename Keys::Kept;
    struct Entry {
        Kept key{};
        std::uint64_t count{0};  // 0: nobody is here; the key's memory may be used again
    };
    static constexpr std::size_t places = 1024;

    FrontCache() : entries_(new Entry[places]) {}
    FrontCache(const FrontCache&) = delete;
    ~FrontCache() {
        for (Entry* entry = begin(); entry != end(); ++entry) Keys::drop(entry->key);
    }

    // The key came `weight` times. Another key in its place is pushed out by `evict`, which takes the count and may
    // exchange the key's memory.
    template <class Evict>
    void add(const Probe& key, std::uint64_t hash, std::uint64_t weight, const Evict& evict) {
        assert(weight != 0);
        Entry& entry = entries_[hash % places];  // the index and the partitions look at the upper bits
        if (__builtin_expect(entry.count != 0, 1)) {
            if (Keys::equal(entry.key, key)) {
                entry.count += weight;
                return;
            }
            evict(entry);
            entry.count = 0;
        }
        Keys::replace(entry.key, key, hash);
        entry.count = weight;
    }

    Entry* begin() { return entries_.get(); }
    Entry* end() { return entries_.get() + places; }

private:
    std::unique_ptr<Entry[]> entries_;
};

}  // namespace callboard
