// A stream's side of a partitioned summary: what it counts by itself, and the parcels that it fills.
//
// While it counts, the stream's thread is the owner of one partition, its own, unless another thread is. So a
// partition's counters stay in one core's cache, and parcels of others are served between two batches of keys.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "callboard/core/memory/stack.hpp"
#include "callboard/frequency/designs/front_cache.hpp"
#include "callboard/frequency/designs/partition.hpp"

namespace callboard {

template <class Keys>
class Feeder {
public:
    using Probe = typename Keys::Probe;
    using Partitions = std::vector<std::unique_ptr<Partition<Keys>>>;  // a power of two of them

    // At its own partition it serves what others hand there while it counts.
    Feeder(Partitions& partitions, std::size_t own_partition, std::uint64_t seed)
        : partitions_(partitions),
          own_partition_(*partitions[own_partition]),
          seed_(seed),
          open_(partitions.size(), nullptr) {
        assert((partitions.size() & (partitions.size() - 1)) == 0 && "a power of two");
        assert(own_partition < partitions.size());
    }
    Feeder(const Feeder&) = delete;

    // One thread at a time. Waits only for a query that is at work here.
    void add(const Probe* keys, const std::uint64_t* weights, std::size_t count) {
        while (!door_.try_own()) std::this_thread::yield();
        const Owned owned{*this};
        for (std::size_t at = 0; at < count;) {
            if (owns_partition_) own_partition_.serve_pending();
            else owns_partition_ = own_partition_.try_own();
            if (door_.has_pending()) serve(door_.take());
            const std::size_t end = std::min(at + batch, count);
            const bool goes_by = !is_skewed_ && ++batches_ % sampled != 0;
            std::size_t pushed_out = 0;
            for (; at < end; ++at) {
                const Probe key = keys[at];  // once: another thread may write to the array
                const std::uint64_t weight = weights == nullptr ? 1 : weights[at];
                const std::uint64_t hash = Keys::hash(seed_, key);
                if (goes_by) {
                    put(key, hash, weight);
                } else {
                    cache_.add(key, hash, weight, [&](auto& entry) {
                        push_out(entry);
                        ++pushed_out;
                    });
                }
                total_.store(total_.load(relaxed) + weight, relaxed);
            }
            if (!goes_by) is_skewed_ = pushed_out < batch - batch / 8;
        }
        if (!leave_own_partition()) throw std::bad_alloc();
    }

    // Any thread. Everything that was counted here before is handed to the partitions when this returns.
    void flush() {
        Flush flush;
        if (door_.own_or_delegate(&flush)) {
            const Owned owned{*this};
            push_all();
        } else {
            flush.done.park();
            if (flush.failed) throw std::bad_alloc();
        }
    }

    // Which partition a key of this hash is counted in: by bits that neither the cache nor the index looks at.
    static std::size_t place_of(std::uint64_t hash, const Partitions& partitions) {
        return (hash / FrontCache<Keys>::places) & (partitions.size() - 1);
    }

    std::uint64_t total() const { return total_.load(relaxed); }

private:
    static constexpr std::size_t batch = 256;
    static constexpr unsigned sampled = 16;  // of a stream that the cache is no use for, one batch of so many tries it

    struct Flush {
        Flush* next{nullptr};
        bool failed{false};
        Parker done;
    };

    struct Parcel final : Partition<Keys>::Request {
        static constexpr unsigned room = 128;
        static constexpr unsigned ahead = 8;
        using Entry = typename FrontCache<Keys>::Entry;

        explicit Parcel(Feeder& feeder) : feeder(feeder) {}
        ~Parcel() override {
            for (Entry& entry : entries) Keys::drop(entry.key);
        }

        void serve(Partition<Keys>& partition) override {
            assert(served <= size && size <= room);
            fetch<0>();  // from the core that filled it
            std::uint64_t hashes[room];
            const auto& counters = partition.counters();
            for (unsigned i = served; i < size; ++i)
                counters.prefetch(hashes[i] = Keys::hash_of(feeder.seed_, entries[i].key));
            for (; served < size; ++served) {
                if (served + ahead < size) counters.prefetch_entry(hashes[served + ahead]);
                partition.add(entries[served].key, hashes[served], entries[served].count);
            }
            partition.settle();
            size = served = 0;
            feeder.returned_.push(this);
        }

        template <int to_write>
        void fetch() const {
            for (auto* at = reinterpret_cast<const char*>(entries); at < reinterpret_cast<const char*>(entries + room);
                 at += cache_line)
                __builtin_prefetch(at, to_write);
        }

        Feeder& feeder;
        unsigned size{0}, served{0};
        Entry entries[room];
    };

    // The thread at work here serves queries before it leaves.
    struct Owned {
        Feeder& feeder;
        ~Owned() {
            do {
                feeder.leave_own_partition();
                feeder.serve(feeder.door_.take());
            } while (!feeder.door_.try_release());
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
        Parcel& parcel = *std::exchange(open_[at], nullptr);
        if (owns_partition_ && partitions_[at].get() == &own_partition_) own_partition_.serve_own(parcel);
        else partitions_[at]->hand(parcel);
    }

    void serve(Flush* flushes) {
        if (flushes == nullptr) return;
        bool failed = false;
        try {
            push_all();
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
    void push_out(typename FrontCache<Keys>::Entry& entry) {
        Parcel& open = open_for(Keys::hash_of(seed_, entry.key));
        assert(open.size < Parcel::room && entry.count != 0);
        std::swap(open.entries[open.size].key, entry.key);
        open.entries[open.size++].count = std::exchange(entry.count, 0);
    }

    // A key that the cache would only be a detour for.
    void put(const Probe& key, std::uint64_t hash, std::uint64_t weight) {
        Parcel& open = open_for(hash);
        assert(open.size < Parcel::room && weight != 0);
        Keys::replace(open.entries[open.size].key, key, hash);
        open.entries[open.size++].count = weight;
    }

    // The parcel, with room for one more, for the partition of this hash. One that is full is handed over now.
    Parcel& open_for(std::uint64_t hash) {
        const std::size_t at = place_of(hash, partitions_);
        if (open_[at] != nullptr && open_[at]->size == Parcel::room) hand(at);
        if (open_[at] == nullptr) open_[at] = spare();
        return *open_[at];
    }

    void push_all() {
        for (auto& entry : cache_)
            if (entry.count != 0) push_out(entry);
        for (std::size_t at = 0; at < open_.size(); ++at)
            if (open_[at] != nullptr && open_[at]->size != 0) hand(at);
    }

    // One that nobody uses. As many are under way as there may be: then their partitions are behind, and we help.
    Parcel* spare() {
        Budget& budget = own_partition_.budget();
        for (int looks = 0; budget.has_much_debt() && looks < 64; ++looks) help();
        for (;;) {
            if (spares_ == nullptr) spares_ = returned_.take_all();
            if (spares_ != nullptr) {
                Parcel* const parcel = static_cast<Parcel*>(spares_);
                assert(parcel->size == 0 && parcel->served == 0 && "a parcel comes back when it is counted");
                spares_ = parcel->next;
                parcel->template fetch<1>();  // from the core that has counted it
                return parcel;
            }
            if (parcels_.size() < 4 * partitions_.size()) {
                parcels_.push_back(std::make_unique<Parcel>(*this));
                return parcels_.back().get();
            }
            help();
        }
    }

    // Serves what is pending at partitions that nobody serves, and has them give up what they should.
    void help() {
        if (!leave_own_partition()) throw std::bad_alloc();
        for (auto& partition : partitions_)
            if (partition->try_own()) partition->leave();
        if (returned_.seems_empty()) std::this_thread::yield();
    }

    using Request = typename Partition<Keys>::Request;

    Partitions& partitions_;
    Partition<Keys>& own_partition_;
    unsigned batches_{0};
    bool is_skewed_{true};
    bool owns_partition_{false};  // the thread at work here is the owner of its own one
    const std::uint64_t seed_;
    FrontCache<Keys> cache_;
    std::vector<Parcel*> open_;
    Request* spares_{nullptr};
    std::vector<std::unique_ptr<Parcel>> parcels_;
    Atomic<std::uint64_t> total_{0};
    alignas(cache_line) Delegation<Flush> door_;
    alignas(cache_line) Stack<Request> returned_;
};

}  // namespace callboard
