// A baseline of the hybrid queue: a queue for each partition, and a worker takes a partition and works on it.
//
// Prasaad et al. 2018, section 4.2. The order in which partitions have work is unknown, so outputs wait for
// partitions on which no worker works. More partitions than workers do not help, so a skewed partition has
// one worker alone. It is a peer for measurements.
#pragma once

#include <memory>
#include <utility>

#include "callboard/core/atomics.hpp"
#include "callboard/mailbox/ordered/spsc.hpp"

namespace callboard {

// The interface of HybridQueue. waiting() counts the values of owned partitions, too. So a call of
// consume_one() may find nothing although values wait, and a worker that looks for work comes again.
template <class T>
class PartitionedQueue {
public:
    // Room for `each` values in a partition, rounded up to a power of two.
    PartitionedQueue(std::uint32_t partitions, std::size_t each, std::uint32_t = 1)
        : count_(partitions), partitions_(new std::unique_ptr<Partition>[partitions]) {
        for (std::uint32_t i = 0; i < partitions; ++i) partitions_[i].reset(new Partition(each));
    }

    // One producer at a time.
    [[nodiscard]] bool add(std::uint32_t partition, T value) {
        if (!partitions_[partition]->values.try_push(std::move(value))) return false;
        added_.store(added_.load(relaxed) + 1, seq_cst);  // with waiting()
        return true;
    }

    // Any worker. Takes a partition, and serves `most` values of it at most.
    template <class Visit>
    bool consume_one(Visit&& visit, std::int64_t most = 16, std::uint32_t = 0) {
        const std::uint32_t first = turn_.fetch_add(1, relaxed);  // each call begins elsewhere
        for (std::uint32_t i = 0; i < count_; ++i) {
            const std::uint32_t index = (first + i) % count_;
            Partition& partition = *partitions_[index];
            // Acquire pairs with the last owner's release.
            if (partition.values.size() == 0 || partition.owned.exchange(true, acquire)) continue;
            std::int64_t served = 0;
            for (T value{}; served != most && partition.values.try_pop(value); ++served)
                visit(index, value);
            partition.owned.store(false, release);  // pairs with the next owner's acquire
            served_.fetch_add(served, relaxed);
            if (served != 0) return true;
        }
        return false;
    }

    // Any thread. A hint, and a guarantee to a thread that goes to sleep, as in Spmc::size().
    std::int64_t waiting() const {
        const std::int64_t added = added_.load(seq_cst);
        const std::int64_t waiting = added - served_.load(relaxed);
        return waiting < 0 ? 0 : waiting;  // the two loads are not one moment
    }

private:
    struct Partition {
        explicit Partition(std::size_t capacity) : values(capacity) {}
        alignas(cache_line) Atomic<bool> owned{false};
        Spsc<T> values;  // its consumer is the owner
    };

    const std::uint32_t count_;
    const std::unique_ptr<std::unique_ptr<Partition>[]> partitions_;
    alignas(cache_line) Atomic<std::int64_t> added_{0};  // the producer
    alignas(cache_line) Atomic<std::int64_t> served_{0};  // workers
    Atomic<std::uint32_t> turn_{0};
};

}  // namespace callboard
