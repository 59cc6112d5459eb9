// The slot of a channel of capacity 0: the sender offers a value, and the receiver takes it.
//
// Null is no value, so one word says all. Each value leaves the slot by one exchange, be it the receiver's that takes
// it or the sender's that takes it back. So exactly one of them has it.
//
// Progress: wait-free.
#pragma once

#include <cassert>

#include "callboard/core/atomics.hpp"

namespace callboard {

// T is a pointer, or a number that is never 0.
template <class T>
class Handover {
public:
    // The sender. False: the value before is still there. Release pairs with take(). relaxed: the sender alone fills
    // the slot.
    [[nodiscard]] bool try_offer(T value) {
        assert(value != T{} && "null is no value");
        if (slot_.load(relaxed) != T{}) return false;
        slot_.store(value, release);
        return true;
    }

    // The receiver, or the sender that takes its own value back. False: there is none. Acquire pairs with
    // try_offer(), release with is_free().
    [[nodiscard]] bool take(T& value) {
        if (slot_.load(relaxed) == T{}) return false;
        const T taken = slot_.exchange(T{}, acq_rel);
        if (taken == T{}) return false;
        value = taken;
        return true;
    }

    // Either. Acquire: a sender that finds the slot free because the receiver took the value sees what the receiver
    // did before.
    bool is_free() const { return slot_.load(acquire) == T{}; }

    // While nobody is at either end. The offered value, or null.
    T offered() const { return slot_.load(relaxed); }

private:
    Atomic<T> slot_{T{}};
};

}  // namespace callboard
