// Several streams at once: each counts what is frequent by itself, in a small cache, and hands what falls out of it
// to the partition that has the key's counter.
//
// Keys are divided among partitions by their hash, so a partition counts as one stream does, with nobody beside it.
// Nobody waits to get at one: who fills a parcel for a partition owns it and counts the parcel, or leaves it with
// the owner (Das et al. 2009, section 4.1). As the caches count in bulk (their section 4.3.1), a skewed stream
// hardly touches what is shared; a flat one is counted by as many threads as there are partitions. Parcels take
// from QPOPSS (Jarlow et al. 2024, "Query and Parallelism Optimized Space-Saving") that keys have owners to whom
// other threads hand filters. Here any thread that has the time is the owner, and no thread has to come back to
// serve.
//
// A query first has every stream's cache emptied, by the thread that counts there or by itself. Then it looks at
// the partitions one after another, behind all that was handed to them. So each count is the key's at a moment
// between the query's begin and its end, and includes each add() that had returned before.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <memory>
#include <vector>

#include "callboard/frequency/designs/feeder.hpp"
#include "callboard/frequency/designs/summary.hpp"

namespace callboard {

template <class Keys>
class Partitioned : public Summary<Keys> {
public:
    using typename Summary<Keys>::Probe;
    using typename Summary<Keys>::Row;
    using typename Summary<Keys>::Answer;
    using typename Summary<Keys>::Estimate;

    // With so many counters each, partitions get as many keys by chance as they have counters for, or nearly.
    static constexpr std::uint32_t fewest = 512;

    // The number of partitions is a power of two: about as many as threads that run at once.
    Partitioned(std::uint32_t capacity, std::uint64_t seed, unsigned streams, unsigned partitions)
        : seed_(seed), budget_(capacity, partitions) {
        assert(partitions != 0 && (partitions & (partitions - 1)) == 0 && "a power of two");
        while (partitions_.size() < partitions)
            partitions_.push_back(std::make_unique<Partition<Keys>>(budget_, partitions_.size(), seed));
        while (feeders_.size() < streams)
            feeders_.push_back(std::make_unique<Feeder<Keys>>(partitions_, feeders_.size() % partitions, seed));
    }

    void add(unsigned stream, const Probe* keys, const std::uint64_t* weights, std::size_t count) override {
        assert(stream < feeders_.size());
        feeders_[stream]->add(keys, weights, count);
    }

    Answer ask(std::size_t most, double support) override {
        const std::uint64_t bar = part_of(support, total());
        settle();
        Answer answer{{}, 0, 0};
        for (auto& partition : partitions_) {
            partition->visit([&](Counters<Keys>& counters) {
                const auto slots = bar == 0 ? counters.top(most) : counters.above(bar);
                for (std::size_t i = 0; i < std::min(most, slots.size()); ++i) {
                    const std::uint32_t slot = slots[i];
                    answer.rows.push_back(
                        {Keys::copy(counters.key_of(slot)), counters.count_of(slot), counters.error_of(slot)});
                }
                answer.unseen = std::max(answer.unseen, counters.unseen());
            });
        }
        keep_greatest(answer.rows, most);
        answer.total = total();
        return answer;
    }

    Estimate estimate(const Probe& key) override {
        flush();
        const std::uint64_t hash = Keys::hash(seed_, key);
        Estimate estimate{};
        partition_of(hash).visit([&](Counters<Keys>& counters) {
            const std::uint32_t slot = counters.find(key, hash);
            if (slot == SlotIndex::none) estimate = {counters.unseen(), counters.unseen(), false};
            else estimate = {counters.count_of(slot), counters.error_of(slot), true};
        });
        return estimate;
    }

    std::uint64_t total() override {
        std::uint64_t sum = loaded_;
        for (auto& feeder : feeders_) sum += feeder->total();
        return sum;
    }

    std::uint32_t size() override {
        settle();
        std::uint32_t sum = 0;
        for (auto& partition : partitions_)
            partition->visit([&](Counters<Keys>& counters) { sum += counters.size(); });
        return sum;
    }

    void load(const Answer& state) override {
        for (const Row& row : state.rows) {
            const Probe key = Keys::probe_of(row.key);
            const std::uint64_t hash = Keys::hash(seed_, key);
            auto& counters = partition_of(hash).counters();
            counters.grow();
            counters.put(key, hash, row.count, row.error);
        }
        for (auto& partition : partitions_) partition->counters().set_unseen(state.unseen);
        budget_.load(state.rows.size(), state.unseen);
        loaded_ = state.total;
    }

private:
    Partition<Keys>& partition_of(std::uint64_t hash) { return *partitions_[Feeder<Keys>::place_of(hash, partitions_)]; }
    void flush() {
        for (auto& feeder : feeders_) feeder->flush();
    }
    // There are no more counters than there may be, unless streams go on. One look at all partitions raises the
    // level, or one of them gives up what is at it.
    void settle() {
        flush();
        for (std::int64_t looks = 2 * budget_.debt(); looks > 0 && budget_.has_debt(); --looks)
            for (auto& partition : partitions_) partition->visit([](Counters<Keys>&) {});
    }

    const std::uint64_t seed_;
    Budget budget_;
    typename Feeder<Keys>::Partitions partitions_;
    std::vector<std::unique_ptr<Feeder<Keys>>> feeders_;
    std::uint64_t loaded_{0};
};

}  // namespace callboard
