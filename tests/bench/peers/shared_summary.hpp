// One structure for all streams, behind locks: Das et al. 2009, section 3.2. It is a peer for measurements.
//
// The search structure is a table of chains with a lock each. There are at least as many chains as counters. So a
// chain's lock is as good as a lock on each element, and cheaper: one lock serves to look for a key and to own it.
// A thread that counts a key keeps its chain locked until that is done. So threads with the same key wait for each
// other, as they do in the paper. The stream summary with a lock on each bucket is in locked_buckets.hpp.
//
// A key without a counter overwrites one of the least count. Its chain is locked by then, and the victim's is only
// tried, with the bucket locked. If all elements of the bucket are busy, their owners are on their way to it; then
// the thread releases everything, waits for one of them, and begins anew. A victim of a greater count would be
// wrong: see locked_buckets.hpp. No thread overwrites before there are `capacity` counters: a key that begins at
// its first count would come in below one that was overwritten.
//
// No deadlock: a thread waits for a chain while it holds nothing, for the lock of growing while it holds a chain,
// and for buckets in their order. A thread that holds a bucket waits for neither a chain nor the lock of growing.
//
// A replaced key is in no chain, and its bucket is locked, so no thread reads it. The new one is made in the
// stream's own memory before, and swapped in. So no thread waits for a malloc, and nothing fails half done.
//
// An answer is one walk through all buckets, from the least on. It includes all that was counted before it began,
// and the counts of its rows together are at most its total.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "callboard/core/atomics.hpp"
#include "callboard/frequency/designs/summary.hpp"
#include "locked_buckets.hpp"
#include "sleeping_lock.hpp"

namespace callboard {

template <class Keys>
class Shared final : public Summary<Keys> {
public:
    using typename Summary<Keys>::Probe;
    using typename Summary<Keys>::Row;
    using typename Summary<Keys>::Answer;
    using typename Summary<Keys>::Estimate;

    Shared(std::uint32_t capacity, std::uint64_t seed, unsigned streams)
        : capacity_(capacity), seed_(seed), streams_(streams), counters_(new Counter[capacity]) {
        std::size_t chains = 2;
        for (; chains < capacity; chains *= 2) --shift_;
        chains_ = std::vector<Chain>(chains);
    }
    ~Shared() override {
        for (std::uint32_t i = 0; i < size_.load(relaxed); ++i) Keys::drop(counters_[i].key);
        for (Stream& own : streams_) Keys::drop(own.key);
    }

    void add(unsigned stream, const Probe* keys, const std::uint64_t* weights, std::size_t count) override {
        constexpr std::size_t batch = 16;  // memory that one wants is fetched while others are counted
        std::uint64_t hashes[batch];
        Probe probes[batch];
        Stream& own = streams_[stream];
        for (std::size_t done = 0; done < count;) {
            const std::size_t many = std::min(batch, count - done);
            for (std::size_t i = 0; i < many; ++i) {
                probes[i] = keys[done + i];  // once: another thread may write to the array
                hashes[i] = Keys::hash(seed_, probes[i]);
                __builtin_prefetch(&chain_of(hashes[i]));
            }
            for (std::size_t i = 0; i < many; ++i)
                add_one(own, probes[i], hashes[i], weights == nullptr ? 1 : weights[done + i]);
            done += many;
        }
    }

    Answer ask(std::size_t most, double support) override {
        Answer answer{{}, 0, least_unseen_};
        auto& rows = answer.rows;
        const std::uint64_t bar = part_of(support, total());
        std::size_t at = 0;  // once there are `most` rows, the next one takes the place of the least
        bool begun = false;
        buckets_.visit([&](const Element& element, std::uint64_t count) {
            if (!begun && is_full()) answer.unseen = count;
            begun = true;
            if (count <= bar || most == 0) return true;
            const auto& counter = static_cast<const Counter&>(element);
            Row row{Keys::copy(counter.key), count, counter.error};
            if (rows.size() < most) rows.push_back(std::move(row));
            else {
                rows[at] = std::move(row);
                at = at + 1 == most ? 0 : at + 1;
            }
            return true;
        });
        std::rotate(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(at), rows.end());
        std::reverse(rows.begin(), rows.end());
        answer.total = total();  // after the walk: it has what the counts have
        return answer;
    }

    Estimate estimate(const Probe& key) override {
        const std::uint64_t hash = Keys::hash(seed_, key);
        Chain& chain = chain_of(hash);
        const std::lock_guard<Lock> guard(chain.lock);
        if (const Counter* const counter = find(chain, key, hash))
            return {buckets_.count_of(*counter), counter->error, true};
        std::uint64_t unseen = least_unseen_;
        if (is_full()) {
            buckets_.visit([&](const Element&, std::uint64_t count) {
                unseen = count;
                return false;
            });
        }
        return {unseen, unseen, false};
    }

    std::uint64_t total() override {
        std::uint64_t total = 0;
        for (const Stream& own : streams_) total += own.total.load(relaxed);
        return total;
    }

    std::uint32_t size() override { return size_.load(relaxed); }

    void load(const Answer& state) override {
        std::vector<const Row*> sorted;
        for (const Row& row : state.rows) sorted.push_back(&row);
        // The greatest first, so that each comes to the front.
        std::sort(sorted.begin(), sorted.end(), [](auto a, auto b) { return a->count > b->count; });
        Stream& own = streams_.front();
        for (const Row* row : sorted) {
            const Probe key = Keys::probe_of(row->key);
            const std::uint64_t hash = Keys::hash(seed_, key);
            buckets_.provide(own.spares);
            begin(own, chain_of(hash), key, hash, row->count, row->error);
        }
        own.total.store(state.total, relaxed);
        least_unseen_ = state.unseen;
    }

private:
    using Lock = SleepingLock<16>;
    using Element = LockedBuckets::Element;
    // A counter's chain guards `following` and `hash`, and its own lock is the element's.
    struct alignas(cache_line) Counter : Element {
        Counter* following{nullptr};
        std::uint64_t hash{0};
        typename Keys::Kept key{};
        std::uint64_t error{0};
    };
    struct alignas(cache_line) Chain {
        Lock lock;
        Counter* first{nullptr};
    };
    struct alignas(cache_line) Stream {
        Atomic<std::uint64_t> total{0};  // written by the stream alone
        LockedBuckets::Spares spares;
        typename Keys::Kept key{};  // memory for the next key that overwrites one
    };

    Chain& chain_of(std::uint64_t hash) { return chains_[hash >> shift_]; }

    // Acquire pairs with the release in begin(): all counters are in their buckets.
    bool is_full() const { return size_.load(acquire) == capacity_; }

    static Counter* find(const Chain& chain, const Probe& key, std::uint64_t hash) {
        Counter* counter = chain.first;
        while (counter != nullptr && !(counter->hash == hash && Keys::equal(counter->key, key)))
            counter = counter->following;
        return counter;
    }

    static void put_in(Chain& chain, Counter& counter) { counter.following = std::exchange(chain.first, &counter); }

    static void take_out(Chain& chain, Counter& counter) {
        Counter** link = &chain.first;
        while (*link != &counter) link = &(*link)->following;
        *link = counter.following;
    }

    // Before the counts can be seen, so that no answer has counts beyond its total.
    static void counts(Stream& own, std::uint64_t weight) {
        own.total.store(own.total.load(relaxed) + weight, relaxed);
    }

    void add_one(Stream& own, const Probe& key, std::uint64_t hash, std::uint64_t weight) {
        buckets_.provide(own.spares);
        Chain& chain = chain_of(hash);
        for (;;) {
            Chain* busy = nullptr;
            {
                const std::lock_guard<Lock> guard(chain.lock);
                if (Counter* const counter = find(chain, key, hash)) {
                    counts(own, weight);
                    return buckets_.increment(*counter, weight, own.spares);
                }
                if (!is_full() && begin(own, chain, key, hash, weight + least_unseen_, least_unseen_)) return;
                if (overwrite(own, chain, key, hash, weight, busy)) return;
            }
            const std::lock_guard<Lock> until_its_owner_is_through(busy->lock);
        }
    }

    // A counter for a key that has none, whose chain is locked. False if there are as many as there may be.
    bool begin(Stream& own, Chain& chain, const Probe& key, std::uint64_t hash, std::uint64_t count,
               std::uint64_t error) {
        const std::lock_guard<Lock> guard(growing_);
        const std::uint32_t size = size_.load(relaxed);
        if (size == capacity_) return false;
        Counter& counter = counters_[size];
        Keys::replace(counter.key, key, hash);
        counter.hash = hash;
        counter.error = error;
        put_in(chain, counter);
        counts(own, count - error);
        buckets_.insert(counter, count, own.spares);
        size_.store(size + 1, release);  // pairs with the acquire in is_full()
        return true;
    }

    // False if all counters of the least count are busy; then one of those is in the chain `busy`.
    bool overwrite(Stream& own, Chain& chain, const Probe& key, std::uint64_t hash, std::uint64_t weight,
                   Chain*& busy) {
        Keys::replace(own.key, key, hash);
        const auto try_own = [&](const Element& element) {
            Chain& other = chain_of(static_cast<const Counter&>(element).hash);
            if (&other == &chain || other.lock.try_lock()) return true;
            busy = &other;
            return false;
        };
        const auto change = [&](Element& element, std::uint64_t least) {
            auto& counter = static_cast<Counter&>(element);
            Chain& other = chain_of(counter.hash);
            take_out(other, counter);
            if (&other != &chain) other.lock.unlock();
            std::swap(counter.key, own.key);
            counter.hash = hash;
            counter.error = least;
            put_in(chain, counter);
            counts(own, weight);
        };
        return buckets_.overwrite(weight, own.spares, try_own, change);
    }

    const std::uint32_t capacity_;
    const std::uint64_t seed_;
    unsigned shift_{63};  // 64 - log2 of the number of chains
    std::vector<Chain> chains_;
    std::vector<Stream> streams_;
    const std::unique_ptr<Counter[]> counters_;
    LockedBuckets buckets_;
    std::uint64_t least_unseen_{0};  // of what was loaded
    alignas(cache_line) Lock growing_;
    Atomic<std::uint32_t> size_{0};
};

}  // namespace callboard
