// What stages order and divide their work with: the paper's structures, or the rivals that they are measured
// against. Chosen for a run; the cost of the choice is a branch for each round.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <variant>

#include "callboard/mailbox/ordered/hybrid.hpp"
#include "callboard/mailbox/ordered/reorder.hpp"
#include "callboard/mailbox/rivals/partitioned.hpp"
#include "callboard/mailbox/rivals/reorder_locked.hpp"
#include "callboard/mailbox/rivals/shared.hpp"

namespace callboard {

enum class Reordering : std::uint8_t { non_blocking, locked };
enum class Partitioning : std::uint8_t { hybrid, partitioned, shared };

// Outputs of the rounds in flight, `window` at most, which leave in the order of their serial numbers.
class RoundsInOrder {
public:
    // Twice the window, because the buffer tells late what has left it. So it takes every round in flight.
    RoundsInOrder(Reordering which, std::uint32_t window) {
        if (which == Reordering::locked) buffer_ = std::make_unique<LockedReorderBuffer<void*>>(2 * window);
        else buffer_ = std::make_unique<ReorderBuffer<void*>>(2 * window);
    }

    template <class Sink>
    void send(std::int64_t serial, void* output, Sink&& sink) {
        [[maybe_unused]] const bool fits = std::visit(
            [&](auto& buffer) { return buffer->send(serial, std::move(output), sink); }, buffer_);
        assert(fits);
    }

private:
    std::variant<std::unique_ptr<ReorderBuffer<void*>>, std::unique_ptr<LockedReorderBuffer<void*>>> buffer_;
};

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
