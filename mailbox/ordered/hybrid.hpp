// The worklist of a partitioned stateful operator. One worker at a time serves a partition's values, in
// order. Any number of workers serve partitions at once, almost in the order of arrival.
//
// Prasaad, Ramalingam and Rajan 2018, section 4.3, figure 7. Values wait in a queue for each partition. A
// master queue holds, for each value, its partition only. A worker takes a partition from the master queue
// and makes a reservation for any one value of it. If the partition has an owner, the owner serves the
// reservation (a counted delegation), and the worker goes on to the next partition. Otherwise it owns the
// partition and serves all reservations, its own and those of others.
//
//     add(2, c)     master  0 2 0 2        partition 0: a, b     reservations 0
//                                          partition 2: x, c     reservations 0
//
// Why a partition's values are served in order, each once, by one worker at a time (theorem 4.1). A value
// enters its partition's queue before its partition enters the master queue. So there is a value for each
// reservation, and the owner finds one as often as it is due. Only the owner takes from the queue, which is
// first in, first out. There is one owner at a time by CountedDelegation's argument; and the next owner sees
// what this one did, because it acquires what settle() released.
//
// A worker serves a bounded number of a partition's values, and looks at its clock again. If more is due
// then, it passes the ownership on: the partition, still owned, goes into a second queue. Workers look
// there before they look at the master queue, because the values there are older. The worker that takes the
// partition is its owner, without another reservation. So at every moment a partition with something due is
// owned by one worker, or is in that queue once: nothing is left, and nothing is served twice. If the
// second queue has no room at this very moment (a worker stopped in the middle of taking from it), the
// owner serves one more value and tries again. The rejected alternative puts the partition back at the
// master queue's end. Then the partition with the most work is served last, and all outputs wait for it.
//
// Homes. A worker that serves a partition again finds its state in its cache, and without an interpreter lock it
// owns the objects in it, so it counts their references without atomic operations. So there are several master
// queues, and each partition belongs to one, its home. A worker looks first in the home with its number, and
// elsewhere only if nothing waits there. The paper has one master queue.
//
// Progress: add() is wait-free, and consume_one() is lock-free: a worker that meets an owned partition
// goes on at once.
#pragma once

#include <algorithm>
#include <cassert>
#include <memory>
#include <utility>
#include <vector>

#include "callboard/core/atomics.hpp"
#include "callboard/mailbox/delegation.hpp"
#include "callboard/mailbox/ordered/spmc.hpp"
#include "callboard/mailbox/ordered/spsc.hpp"
#include "callboard/mailbox/ordered/worklist.hpp"

namespace callboard {

// Its peers in benchmarks (tests/bench/peers) have the same interface. T is default-constructible and movable.
template <class T>
class HybridQueue {
public:
    // More would cost a look at each, whenever a worker finds nothing.
    static constexpr std::uint32_t most_homes = 8;

    // Room for `each` values in a partition, rounded up to a power of two. Workers have numbers up to `workers`.
    HybridQueue(std::uint32_t partitions, std::size_t each, std::uint32_t workers = 1)
        : partitions_(new std::unique_ptr<Partition>[partitions]), passed_on_(partitions) {
        assert(partitions != 0 && each != 0 && workers != 0);
        for (std::uint32_t i = 0; i < partitions; ++i) partitions_[i].reset(new Partition(each));
        const auto homes = std::min({workers, partitions, most_homes});
        const auto here = (partitions + homes - 1) / homes;
        const auto all = static_cast<std::size_t>(partitions_[0]->values.capacity()) * here;
        for (std::uint32_t i = 0; i < homes; ++i) masters_.push_back(std::make_unique<Spmc<std::uint32_t>>(all));
    }

    // One producer at a time. False: `each` values of the partition wait, and this one was not added.
    [[nodiscard]] bool add(std::uint32_t partition, T value) {
        if (!partitions_[partition]->values.try_push(std::move(value))) return false;
        // There is room: for each partition that it holds, a value waits.
        [[maybe_unused]] const bool fits = master_of(partition).try_push(partition);
        assert(fits && "the ring is never full");
        return true;
    }

    // Any worker, by its number. Takes one partition, and either leaves the reservation to its owner, or owns it and
    // serves, by `visit(partition, value)`, the values that are due: `most` values at most. False: there was nothing
    // to take. Visit gets a T&, and must not throw.
    template <class Visit>
    bool consume_one(Visit&& visit, std::int64_t most = 16, std::uint32_t worker = 0) {
        assert(most > 0);
        std::uint32_t partition;
        if (passed_on_.pop(partition) == passed_on_.none) {
            if (!take(worker, partition)) return false;
            if (!partitions_[partition]->reservations.own_or_delegate()) return true;
        }
        serve(partition, visit, most);
        return true;
    }

    // Any thread. The work for one more worker: values without a reservation, and partitions that were passed on. A
    // hint, and a guarantee to a thread that goes to sleep, as in Spmc::size().
    std::int64_t waiting() const {
        auto found = passed_on_.size();
        for (auto& master : masters_) found += master->size();
        return found;
    }

private:
    struct Partition {
        explicit Partition(std::size_t capacity) : values(capacity) {}
        Spsc<T> values;  // its consumer is the owner
        alignas(cache_line) CountedDelegation reservations;
    };

    Spmc<std::uint32_t>& master_of(std::uint32_t number) { return *masters_[number % masters_.size()]; }

    // A partition of the worker's home, or else of the next one that has any.
    bool take(std::uint32_t worker, std::uint32_t& partition) {
        for (std::size_t i = 0; i < masters_.size(); ++i)
            if (master_of(worker + static_cast<std::uint32_t>(i)).try_pop(partition)) return true;
        return false;
    }

    // The owner. Serves the values that are due. Then releases the partition, or passes the rest on.
    template <class Visit>
    void serve(std::uint32_t index, Visit& visit, std::int64_t most) {
        Partition& partition = *partitions_[index];
        for (std::int64_t due = 1;;) {
            assert(due > 0);
            for (std::int64_t i = 0; i < due; ++i) {
                T value{};
                [[maybe_unused]] const bool found = partition.values.try_pop(value);
                assert(found && "there is a value for each reservation");
                visit(index, value);
            }
            most -= due;
            due = partition.reservations.settle(due);
            if (due == 0) return;
            if (most <= 0) {
                if (passed_on_.push(index) != passed_on_.none) return;
                most = 1;
            }
            due = std::min(due, most);
        }
    }

    const std::unique_ptr<std::unique_ptr<Partition>[]> partitions_;
    std::vector<std::unique_ptr<Spmc<std::uint32_t>>> masters_;  // of homes
    Worklist<std::uint32_t> passed_on_;
};

}  // namespace callboard
