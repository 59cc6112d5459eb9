// The baseline of the reorder buffer: figure 2 of Prasaad et al. 2018, a lock around everything.
//
// It has the interface of ReorderBuffer, and a ring like it. The holder of the lock sends; all other
// threads wait for it, even those that only want to put a value aside. It is a peer for measurements.
#pragma once

#include <mutex>
#include <utility>

#include "callboard/core/atomics.hpp"
#include "callboard/mailbox/ordered/ring.hpp"

namespace callboard {

// As ReorderBuffer. has_room() and next() are behind until a run of values has been sent. The lock orders
// everything; `next_` is atomic for those two alone.
template <class T>
class LockedReorderBuffer {
public:
    explicit LockedReorderBuffer(std::size_t capacity) : slots_(capacity) {}

    template <class Sink>
    [[nodiscard]] bool send(std::int64_t serial, T&& value, Sink&& sink) {
        const std::lock_guard<std::mutex> guard(lock_);
        std::int64_t next = next_.load(relaxed);
        if (serial >= next + slots_.capacity()) return false;
        if (serial != next) {
            slots_[serial] = {serial, std::move(value)};
            return true;
        }
        sink(value);
        for (++next; slots_[next].serial == next; ++next) sink(slots_[next].value);
        next_.store(next, release);  // pairs with next()
        return true;
    }

    bool has_room(std::int64_t serial) const { return serial < next() + slots_.capacity(); }

    std::int64_t next() const { return next_.load(acquire); }  // pairs with send()

    std::int64_t capacity() const { return slots_.capacity(); }

private:
    struct Slot {
        std::int64_t serial = -1;
        T value{};
    };

    std::mutex lock_;
    const Ring<Slot> slots_;
    Atomic<std::int64_t> next_{0};
};

}  // namespace callboard
