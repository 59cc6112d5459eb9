// A stream's side of a partitioned summary: a cache in which it counts by itself, and the batches that it fills for the
// partitions.
//
// While it counts, the stream's thread is the owner of one partition, its own, unless another thread is. So a
// partition's counters stay in one core's cache, and the batches of others are served between two blocks of keys.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "callboard/core/memory/stack.hpp"
#include "callboard/frequency/designs/partition.hpp"

namespace callboard {

// A direct-mapped cache of counts: each key may be only in the one place that its hash names.
//
// A frequent key stays, and its count grows. Two keys that compete for a place evict each other, with what they have
// counted until then. So of a skewed stream few elements get past the cache, in bulk, and of a flat one all.
template <class Keys>
class FrontCache {
public:
    using Probe = typename Keys::Probe;
    struct Entry {
        typename Keys::Kept key{};
        std::uint64_t count{0};  // 0: the place is free; the key's memory may be used again
    };
    static constexpr std::size_t places = 1024;

    FrontCache() : entries_(new Entry[places]) {}
    FrontCache(const FrontCache&) = delete;
    ~FrontCache() {
        for (Entry* entry = begin(); entry != end(); ++entry) Keys::drop(entry->key);
    }

    // The key came `weight` times. `evict` is called with the entry of another key in its place; it takes the count,
    // and may exchange the key's memory.
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

template <class Keys>
class StreamSide {
public:
    using Probe = typename Keys::Probe;
    using Partitions = std::vector<std::unique_ptr<Partition<Keys>>>;  // a power of two of them

    // At its own partition it serves what others hand there while it counts.
    StreamSide(Partitions& partitions, std::size_t own_partition, std::uint64_t seed)
        : partitions_(partitions),
          own_partition_(*partitions[own_partition]),
          seed_(seed),
          open_(partitions.size(), nullptr) {
        assert((partitions.size() & (partitions.size() - 1)) == 0 && "a power of two");
        assert(own_partition < partitions.size());
    }
    StreamSide(const StreamSide&) = delete;

    // One thread at a time. Waits only for a query that is served here.
    void add(const Probe* keys, const std::uint64_t* weights, std::size_t count) {
        while (!door_.try_own()) std::this_thread::yield();
        const Owned owned{*this};
        for (std::size_t at = 0; at < count;) {
            if (owns_partition_) own_partition_.serve_pending();
            else owns_partition_ = own_partition_.try_own();
            if (door_.has_pending()) serve(door_.take());
            const std::size_t end = std::min(at + block, count);
            const bool bypasses = !is_skewed_ && ++blocks_ % sampled != 0;
            std::size_t evicted = 0;
            for (; at < end; ++at) {
                const Probe key = keys[at];  // once: another thread may write to the array
                const std::uint64_t weight = weights == nullptr ? 1 : weights[at];
                const std::uint64_t hash = Keys::hash(seed_, key);
                if (bypasses) {
                    put(key, hash, weight);
                } else {
                    cache_.add(key, hash, weight, [&](auto& entry) {
                        put_evicted(entry);
                        ++evicted;
                    });
                }
                total_.store(total_.load(relaxed) + weight, relaxed);
            }
            if (!bypasses) is_skewed_ = evicted < block - block / 8;
        }
        if (!leave_own_partition()) throw std::bad_alloc();
    }

    // Any thread. Everything that was counted here before is handed to the partitions when this returns.
    void flush() {
        Flush flush;
        if (door_.own_or_delegate(&flush)) {
            const Owned owned{*this};
            hand_all();
        } else {
            flush.done.park();
            if (flush.failed) throw std::bad_alloc();
        }
    }

    // Which partition a key of this hash is counted in: by bits that neither the cache nor the index looks at.
    static std::size_t place_of(std::uint64_t hash, const Partitions& partitions) {
        return (hash / FrontCache<Keys>::places) & (partitions.size() - 1);
    }

    // relaxed: its one writer is the stream's thread, and a total orders nothing.
    std::uint64_t total() const { return total_.load(relaxed); }

private:
    static constexpr std::size_t block = 256;
    static constexpr unsigned sampled = 16;  // one block in this many tries the cache, if the stream does not gain by it

    struct Flush {
        Flush* next{nullptr};
        bool failed{false};
        Parker done;
    };

    // Keys for one partition, with their counts and the memory of their keys: one request.
    struct Batch final : Partition<Keys>::Request {
        static constexpr unsigned room = 128;
        static constexpr unsigned ahead = 8;
        using Entry = typename FrontCache<Keys>::Entry;

        explicit Batch(StreamSide& side) : side(side) {}
        ~Batch() override {
            for (Entry& entry : entries) Keys::drop(entry.key);
        }

        void serve(Partition<Keys>& partition) override {
            assert(served <= size && size <= room);
            fetch<0>();  // from the core that filled it
            std::uint64_t hashes[room];
            const auto& counters = partition.counters();
            for (unsigned i = served; i < size; ++i)
                counters.prefetch(hashes[i] = Keys::hash_of(side.seed_, entries[i].key));
            for (; served < size; ++served) {
                if (served + ahead < size) counters.prefetch_entry(hashes[served + ahead]);
                partition.add(entries[served].key, hashes[served], entries[served].count);
            }
            partition.settle();
            size = served = 0;
            side.returned_.push(this);
        }

        template <int to_write>
        void fetch() const {
            for (auto* at = reinterpret_cast<const char*>(entries); at < reinterpret_cast<const char*>(entries + room);
                 at += cache_line)
                __builtin_prefetch(at, to_write);
        }

        StreamSide& side;
        unsigned size{0}, served{0};
        Entry entries[room];
    };

    // The thread that counts here serves queries before it leaves.
    struct Owned {
        StreamSide& side;
        ~Owned() {
            do {
                side.leave_own_partition();
                side.serve(side.door_.take());
            } while (!side.door_.try_release());
        }
    };

    // False: something could not be counted for lack of memory, and waits there.
    bool leave_own_partition() {
        if (!std::exchange(owns_partition_, false)) return true;
        try {
            own_partition_.leave();
            return true;
        } catch (const std::bad_alloc&) {
            return false;
        }
    }

    void hand(std::size_t at) {
        assert(open_[at] != nullptr && open_[at]->size != 0);
        Batch& batch = *std::exchange(open_[at], nullptr);
        if (owns_partition_ && partitions_[at].get() == &own_partition_) own_partition_.serve_own(batch);
        else partitions_[at]->hand(batch);
    }

    void serve(Flush* flushes) {
        if (flushes == nullptr) return;
        bool failed = false;
        try {
            hand_all();
        } catch (const std::bad_alloc&) {
            failed = true;
        }
        while (flushes != nullptr) {
            Flush* const flush = std::exchange(flushes, flushes->next);
            flush->failed = failed;
            flush->done.unpark();  // the query's from here on
        }
    }

    // Out of the cache, with the memory of its key.
    void put_evicted(typename FrontCache<Keys>::Entry& entry) {
        Batch& open = open_for(Keys::hash_of(seed_, entry.key));
        assert(open.size < Batch::room && entry.count != 0);
        std::swap(open.entries[open.size].key, entry.key);
        open.entries[open.size++].count = std::exchange(entry.count, 0);
    }

    // A key of a stream that does not gain by the cache.
    void put(const Probe& key, std::uint64_t hash, std::uint64_t weight) {
        Batch& open = open_for(hash);
        assert(open.size < Batch::room && weight != 0);
        Keys::replace(open.entries[open.size].key, key, hash);
        open.entries[open.size++].count = weight;
    }

    // The batch, with room for one more, for the partition of this hash. One that is full is handed over now.
    Batch& open_for(std::uint64_t hash) {
        const std::size_t at = place_of(hash, partitions_);
        if (__builtin_expect(open_[at] == nullptr || open_[at]->size == Batch::room, 0)) open_another(at);
        return *open_[at];
    }
    // Inlined it would take registers from the loop over the keys: a tenth more time for a key in the cache.
    __attribute__((noinline)) void open_another(std::size_t at) {
        if (open_[at] != nullptr) hand(at);
        open_[at] = spare();
    }

    void hand_all() {
        for (auto& entry : cache_)
            if (entry.count != 0) put_evicted(entry);
        for (std::size_t at = 0; at < open_.size(); ++at)
            if (open_[at] != nullptr && open_[at]->size != 0) hand(at);
    }

    // An unused batch. If all batches are under way, their partitions are behind, and this thread helps them.
    Batch* spare() {
        Budget& budget = own_partition_.budget();
        for (int looks = 0; budget.has_much_debt() && looks < 64; ++looks) help();
        for (;;) {
            if (spares_ == nullptr) spares_ = returned_.take_all();
            if (spares_ != nullptr) {
                Batch* const batch = static_cast<Batch*>(spares_);
                assert(batch->size == 0 && batch->served == 0 && "a batch comes back when it is counted");
                spares_ = batch->next;
                batch->template fetch<1>();  // from the core that has counted it
                return batch;
            }
            if (batches_.size() < 4 * partitions_.size()) {
                batches_.push_back(std::make_unique<Batch>(*this));
                return batches_.back().get();
            }
            help();
        }
    }

    // Serves pending requests at partitions without an owner, and lets these give up counters.
    void help() {
        if (!leave_own_partition()) throw std::bad_alloc();
        for (auto& partition : partitions_)
            if (partition->try_own()) partition->leave();
        if (returned_.seems_empty()) std::this_thread::yield();
    }

    using Request = typename Partition<Keys>::Request;

    Partitions& partitions_;
    Partition<Keys>& own_partition_;
    unsigned blocks_{0};
    bool is_skewed_{true};
    bool owns_partition_{false};  // the thread that counts here owns the stream's own partition
    const std::uint64_t seed_;
    FrontCache<Keys> cache_;
    std::vector<Batch*> open_;
    Request* spares_{nullptr};
    std::vector<std::unique_ptr<Batch>> batches_;
    Atomic<std::uint64_t> total_{0};
    alignas(cache_line) Delegation<Flush> door_;
    alignas(cache_line) Stack<Request> returned_;
};

}  // namespace callboard
