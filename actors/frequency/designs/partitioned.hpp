// A summary that several streams feed at once, in partitions: a stream counts frequent keys by itself, in a small
// cache, and hands what the cache evicts to the partition that has the key's counter.
//
// Keys are divided among partitions by their hash, so a partition counts as one stream does, without concurrency.
// No thread waits for a partition: a thread with a full batch for it becomes its owner and counts the batch, or leaves
// it with the owner (Das et al. 2009, section 4.1). As the caches count in bulk (their section 4.3.1), a skewed stream
// hardly touches what is shared; a flat one is counted by as many threads as there are partitions. That keys have
// owners, to whom other threads hand filters, is from QPOPSS (Jarlow et al. 2024, "Query and Parallelism Optimized
// Space-Saving"). Here any thread that has the time is the owner, and no thread has to come back to serve.
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

#include "callboard/frequency/designs/stream_side.hpp"
#include "callboard/frequency/designs/summary.hpp"

namespace callboard {

template <class Keys>
class Partitioned : public Summary<Keys> {
public:
    using typename Summary<Keys>::Probe;
    using typename Summary<Keys>::Row;
    using typename Summary<Keys>::Answer;
    using typename Summary<Keys>::Estimate;

    // With this number of counters each, keys spread almost evenly over the partitions.
    static constexpr std::uint32_t fewest = 512;

    // The number of partitions is a power of two: about as many as threads that run at once.
    Partitioned(std::uint32_t capacity, std::uint64_t seed, unsigned streams, unsigned partitions)
        : seed_(seed), budget_(capacity, partitions) {
        assert(partitions != 0 && (partitions & (partitions - 1)) == 0 && "a power of two");
        while (partitions_.size() < partitions)
            partitions_.push_back(std::make_unique<Partition<Keys>>(budget_, partitions_.size(), seed));
        while (sides_.size() < streams)
            sides_.push_back(std::make_unique<StreamSide<Keys>>(partitions_, sides_.size() % partitions, seed));
    }

    void add(unsigned stream, const Probe* keys, const std::uint64_t* weights, std::size_t count) override {
        assert(stream < sides_.size());
        sides_[stream]->add(keys, weights, count);
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
        assert(answer.unseen <= budget_.level() && "a key without a counter lost it to a count at the level");
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
        for (auto& side : sides_) sum += side->total();
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
        assert(total() == 0 && "before anything is counted");
        for (const Row& row : state.rows) {
            assert(row.error <= row.count && row.count != 0);
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
    Partition<Keys>& partition_of(std::uint64_t hash) {
        return *partitions_[StreamSide<Keys>::place_of(hash, partitions_)];
    }
    void flush() {
        for (auto& side : sides_) side->flush();
    }
    // Afterwards there are no more counters than there may be, unless streams go on. One look at all partitions raises
    // the level, or one of them gives up what is at it.
    void settle() {
        flush();
        for (std::int64_t looks = 2 * budget_.debt(); looks > 0 && budget_.has_debt(); --looks)
            for (auto& partition : partitions_) partition->visit([](Counters<Keys>&) {});
    }

    const std::uint64_t seed_;
    Budget budget_;
    typename StreamSide<Keys>::Partitions partitions_;
    std::vector<std::unique_ptr<StreamSide<Keys>>> sides_;
    std::uint64_t loaded_{0};
};

}  // namespace callboard
