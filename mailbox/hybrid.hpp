// The worklist of a partitioned stateful operator: each partition's values in order and by one worker at a
// time, any number of workers at once, and all of it almost in the order of arrival.
//
// Prasaad, Ramalingam and Rajan 2018, section 4.3, figure 7. Values wait in a queue for each partition. A
// master queue holds, for each value, its partition only. A worker takes a partition from the master queue
// and claims one value of it, whichever. If the partition has an owner, the claim is the owner's business
// (a counted delegation), and the worker goes on to the next partition. Otherwise it owns the partition
// and serves what is claimed, its own and others' claims.
//
//     add(2, c)     master  0 2 0 2        partition 0: a, b     claims 0
//                                          partition 2: x, c     claims 0
//
// Why a partition's values are served in order, each once, by one worker at a time (theorem 4.1). A value
// enters its partition's queue before its partition enters the master queue, so for each claim there is a
// value: the owner finds one as often as it is due. Only the owner takes from the queue, which is first
// in, first out. There is one owner at a time by CountedDelegation's argument; and what an owner did is
// seen by the next, which acquires what settle() released.
//
// A worker may stop while more is due, when its time slice is over. Then it passes the ownership on: the
// partition, still owned, goes into a second queue, from which workers take before they look at the
// master queue, since what waits there is older. Whoever takes it is the owner, without a claim of
// its own. So a partition with something due is at every moment owned by one worker, or is in that
// queue once: nothing is left, and nothing is served twice. If the second queue has no room at this very
// moment (a worker stopped in the middle of taking from it), the owner serves one more value and tries
// again. The rejected alternative, to put the partition back into the master queue's end, makes the
// partition with the most work the last one to be served, and all outputs wait for it.
//
// Progress: add() is wait-free. consume() is lock-free, and who meets an owned partition loses no
// time. One call takes at most a master queue's capacity of partitions that turn out to be owned.
#pragma once

#include <memory>
#include <utility>

#include "callboard/core/atomics.hpp"
#include "callboard/mailbox/delegation.hpp"
#include "callboard/mailbox/spsc.hpp"
#include "callboard/mailbox/worklist.hpp"

namespace callboard {

// PartitionedQueue and SharedQueue have the same interface. T is default-constructible and movable.
template <class T>
class HybridQueue {
public:
    // Room for `each` values in a partition and `all` values altogether, rounded up to powers of two.
    HybridQueue(std::uint32_t partitions, std::size_t each, std::size_t all)
        : partitions_(new std::unique_ptr<Partition>[partitions]), master_(all), passed_on_(partitions) {
        for (std::uint32_t i = 0; i < partitions; ++i) partitions_[i].reset(new Partition(each));
    }

    // One producer at a time. False: no room, and nothing was added.
    [[nodiscard]] bool add(std::uint32_t partition, T value) {
        if (!master_.has_room() || !partitions_[partition]->values.try_push(std::move(value))) return false;
        (void)master_.push(partition);  // the sole producer was told that there is room
        return true;
    }

    // Any worker. Serves values by `visit(partition, value)`, until there is nothing to be had, or visit
    // says false: stop after this one. Returns how many were served. Visit must not throw.
    template <class Visit>
    std::int64_t consume(Visit&& visit) {
        std::int64_t served = 0;
        std::uint32_t partition;
        for (std::int64_t looks = master_.capacity(); looks != 0; --looks) {
            if (passed_on_.pop(partition) == passed_on_.none) {
                if (master_.pop(partition) == master_.none) break;
                if (!partitions_[partition]->claims.own_or_delegate()) continue;
            }
            if (!serve(partition, visit, served)) break;
        }
        return served;
    }

    // Any thread, a hint. What is there for one more worker: values that nobody has claimed, and
    // partitions that were passed on.
    std::int64_t size() const { return master_.size() + passed_on_.size(); }

private:
    struct Partition {
        explicit Partition(std::size_t capacity) : values(capacity) {}
        alignas(cache_line) CountedDelegation claims;
        Spsc<T> values;  // its consumer is the owner
    };

    // The owner. Serves what is due, and lets go. False: visit wants to stop, and the rest is passed on.
    template <class Visit>
    bool serve(std::uint32_t index, Visit& visit, std::int64_t& served) {
        Partition& partition = *partitions_[index];
        bool go_on = true;
        std::int64_t due = 1;
        do {
            std::int64_t done = 0;
            do {
                T value{};
                (void)partition.values.try_pop(value);  // there is one for each claim
                go_on &= static_cast<bool>(visit(index, value));
            } while (++done != due && go_on);
            served += done;
            due = partition.claims.settle(done);
            if (go_on || due == 0) continue;
            if (passed_on_.push(index) != passed_on_.none) return false;
            due = 1;
        } while (due != 0);
        return go_on;
    }

    const std::unique_ptr<std::unique_ptr<Partition>[]> partitions_;
    Worklist<std::uint32_t> master_;
    Worklist<std::uint32_t> passed_on_;
};

}  // namespace callboard
