// A baseline of the hybrid queue: one queue, and a lock on each partition.
//
// Prasaad et al. 2018, section 4.1. A value must leave the queue and lock its partition in one step, or two
// values of a partition could be overtaken between the two; so there is a lock around both. A worker that
// finds the oldest value's partition locked finds nothing: it does not wait, but all values behind that one
// do. It is here to be measured against.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "callboard/core/atomics.hpp"
#include "callboard/mailbox/ring.hpp"

namespace callboard {

// As HybridQueue. A call of consume() may find nothing although there is something: while size() is not 0,
// somebody must come again.
template <class T>
class SharedQueue {
public:
    // Room for `all` values altogether; no partition has another bound.
    SharedQueue(std::uint32_t partitions, std::size_t, std::size_t all)
        : slots_(all), taken_(new bool[partitions]()) {}

    [[nodiscard]] bool add(std::uint32_t partition, T value) {
        const std::lock_guard<std::mutex> guard(lock_);
        const std::int64_t tail = tail_.load(relaxed);
        if (tail - head_.load(relaxed) == slots_.capacity()) return false;
        slots_[tail] = {partition, std::move(value)};
        tail_.store(tail + 1, relaxed);
        return true;
    }

    template <class Visit>
    std::int64_t consume(Visit&& visit) {
        std::int64_t served = 0;
        Slot slot;
        std::unique_lock<std::mutex> guard(lock_);
        for (bool go_on = true; go_on && take(slot); ++served) {
            guard.unlock();
            go_on = static_cast<bool>(visit(slot.partition, slot.value));
            guard.lock();
            taken_[slot.partition] = false;
        }
        return served;
    }

    // Any thread, a hint.
    std::int64_t size() const {
        const std::int64_t size = tail_.load(relaxed) - head_.load(relaxed);
        return size < 0 ? 0 : size;  // the two loads are not one moment
    }

private:
    struct Slot {
        std::uint32_t partition = 0;
        T value{};
    };

    // Under the lock. The oldest value, and its partition with it.
    bool take(Slot& slot) {
        const std::int64_t head = head_.load(relaxed);
        if (head == tail_.load(relaxed) || taken_[slots_[head].partition]) return false;
        slot = std::move(slots_[head]);
        taken_[slot.partition] = true;
        head_.store(head + 1, relaxed);
        return true;
    }

    std::mutex lock_;
    const Ring<Slot> slots_;
    const std::unique_ptr<bool[]> taken_;
    Atomic<std::int64_t> tail_{0}, head_{0};  // changed under the lock; relaxed: read without it for hints
};

}  // namespace callboard
