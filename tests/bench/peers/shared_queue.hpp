// A baseline of the hybrid queue: one queue, and a lock on each partition.
//
// Prasaad et al. 2018, section 4.1. A value must leave the queue and lock its partition in one step, or one
// value of a partition could overtake another in between. So there is a lock around both. A worker that
// finds the oldest value's partition locked finds nothing: it does not wait, but all values behind that one
// do. It is a peer for measurements.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "callboard/core/atomics.hpp"
#include "callboard/mailbox/ordered/ring.hpp"

namespace callboard {

// The interface of HybridQueue. waiting() counts the values behind a locked partition, too. So a call of
// consume_one() may find nothing although values wait, and a worker that looks for work comes again.
template <class T>
class SharedQueue {
public:
    // Room for `each` values for each partition, no matter whose they are, rounded up to a power of two.
    SharedQueue(std::uint32_t partitions, std::size_t each, std::uint32_t = 1)
        : slots_(partitions * each), locked_(new bool[partitions]()) {}

    // Any thread.
    [[nodiscard]] bool add(std::uint32_t partition, T value) {
        const std::lock_guard<std::mutex> guard(lock_);
        const std::int64_t tail = tail_.load(relaxed);
        if (tail - head_.load(relaxed) == slots_.capacity()) return false;
        slots_[tail] = {partition, std::move(value)};
        tail_.store(tail + 1, seq_cst);  // with waiting()
        return true;
    }

    // Any worker. Serves the oldest value, if no other worker serves its partition.
    template <class Visit>
    bool consume_one(Visit&& visit, std::int64_t = 1, std::uint32_t = 0) {
        Slot slot;
        std::unique_lock<std::mutex> guard(lock_);
        const std::int64_t head = head_.load(relaxed);
        if (head == tail_.load(relaxed) || locked_[slots_[head].partition]) return false;
        slot = std::move(slots_[head]);
        locked_[slot.partition] = true;
        head_.store(head + 1, relaxed);
        guard.unlock();
        visit(slot.partition, slot.value);
        guard.lock();
        locked_[slot.partition] = false;
        return true;
    }

    // Any thread. A hint, and a guarantee to a thread that goes to sleep, as in Spmc::size().
    std::int64_t waiting() const {
        const std::int64_t tail = tail_.load(seq_cst);
        const std::int64_t waiting = tail - head_.load(relaxed);
        return waiting < 0 ? 0 : waiting;  // the two loads are not one moment
    }

private:
    struct Slot {
        std::uint32_t partition = 0;
        T value{};
    };

    std::mutex lock_;
    const Ring<Slot> slots_;
    const std::unique_ptr<bool[]> locked_;
    Atomic<std::int64_t> tail_{0}, head_{0};  // changed under the lock; atomic for waiting() alone
};

}  // namespace callboard
