// What stages order and divide their work with: the paper's structures, or the baselines that they are measured
// against. Chosen for a run; the cost of the choice is a branch for each round.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <variant>

#include "callboard/mailbox/ordered/hybrid.hpp"
#include "callboard/mailbox/rivals/partitioned.hpp"
#include "callboard/mailbox/ordered/reorder.hpp"
#include "callboard/mailbox/rivals/reorder_locked.hpp"
#include "callboard/mailbox/rivals/shared.hpp"

namespace callboard {

enum class Reordering : std::uint8_t { non_blocking, locked };
enum class Partitioning : std::uint8_t { hybrid, partitioned, shared };

template <class T>
using AnyReorderBuffer =
    std::variant<std::unique_ptr<ReorderBuffer<T>>, std::unique_ptr<LockedReorderBuffer<T>>>;

template <class T>
AnyReorderBuffer<T> make_reorder_buffer(Reordering which, std::size_t capacity) {
    if (which == Reordering::locked) return std::make_unique<LockedReorderBuffer<T>>(capacity);
    return std::make_unique<ReorderBuffer<T>>(capacity);
}

template <class T>
using AnyPartitionedQueue = std::variant<std::unique_ptr<HybridQueue<T>>, std::unique_ptr<PartitionedQueue<T>>,
                                         std::unique_ptr<SharedQueue<T>>>;

template <class T>
AnyPartitionedQueue<T> make_partitioned_queue(Partitioning which, std::uint32_t partitions, std::size_t each) {
    switch (which) {
        case Partitioning::partitioned: return std::make_unique<PartitionedQueue<T>>(partitions, each);
        case Partitioning::shared: return std::make_unique<SharedQueue<T>>(partitions, each);
        case Partitioning::hybrid: break;
    }
    return std::make_unique<HybridQueue<T>>(partitions, each);
}

}  // namespace callboard
