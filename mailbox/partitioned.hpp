// A baseline of the hybrid queue: a queue for each partition, and a worker takes a partition and works on it.
//
// Prasaad et al. 2018, section 4.2. Nothing says in which order partitions have work, so outputs wait for
// partitions that nobody is at; and there is no use in more partitions than one has workers, so
// a skewed partition is one worker's alone. It is here to be measured against.
#pragma once

#include <memory>
#include <utility>

#include "callboard/core/atomics.hpp"
#include "callboard/mailbox/spsc.hpp"

namespace callboard {

// As HybridQueue. A call of consume() that meets a partition whose owner is about to leave may find
// nothing although there is something: while size() is not 0, somebody must come again.
template <class T>
class PartitionedQueue {
public:
    // Room for `each` values in a partition; altogether, there is no other bound.
    PartitionedQueue(std::uint32_t partitions, std::size_t each, std::size_t)
        : count_(partitions), partitions_(new std::unique_ptr<Partition>[partitions]) {
        for (std::uint32_t i = 0; i < partitions; ++i) partitions_[i].reset(new Partition(each));
    }

    [[nodiscard]] bool add(std::uint32_t partition, T value) {
        return partitions_[partition]->values.try_push(std::move(value));
    }

    template <class Visit>
    std::int64_t consume(Visit&& visit) {
        std::int64_t served = 0;
        const std::uint32_t first = turn_.fetch_add(1, relaxed);  // each call begins elsewhere
        for (std::uint32_t i = 0; i < count_; ++i) {
            const std::uint32_t index = (first + i) % count_;
            Partition& partition = *partitions_[index];
            // Acquire pairs with the last owner's release.
            if (partition.values.size() == 0 || partition.owned.exchange(true, acquire)) continue;
            bool go_on = true;
            for (T value{}; go_on && partition.values.try_pop(value); ++served)
                go_on = static_cast<bool>(visit(index, value));
            partition.owned.store(false, release);  // pairs with the next owner's acquire
            if (!go_on) break;
        }
        return served;
    }

    // Any thread, a hint.
    std::int64_t size() const {
        std::int64_t size = 0;
        for (std::uint32_t i = 0; i < count_; ++i) size += partitions_[i]->values.size();
        return size;
    }

private:
    struct Partition {
        explicit Partition(std::size_t capacity) : values(capacity) {}
        alignas(cache_line) Atomic<bool> owned{false};
        Spsc<T> values;  // its consumer is the owner
    };

    const std::uint32_t count_;
    const std::unique_ptr<std::unique_ptr<Partition>[]> partitions_;
    Atomic<std::uint32_t> turn_{0};
};

}  // namespace callboard
