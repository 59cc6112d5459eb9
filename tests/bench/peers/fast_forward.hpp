// FastForward (Giacomoni, Moseley, Vachharajani 2008), as Prokesch 2011 has it in section 4.4.2, to measure Spsc
// against: null in a slot says that the slot is empty, so neither end reads the other's index.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>

#include "callboard/core/atomics.hpp"

namespace callboard {

// T is a pointer, or a number that is never 0.
template <class T>
class FastForward {
public:
    explicit FastForward(std::size_t capacity) : capacity_(capacity), slots_(new Atomic<T>[capacity]) {
        for (std::size_t i = 0; i < capacity; ++i) slots_[i].store(T{}, relaxed);
    }

    // The producer. Acquire pairs with try_pop(), release with it, too.
    [[nodiscard]] bool try_push(T value) {
        assert(value != T{});
        Atomic<T>& slot = slots_[tail_];
        if (slot.load(acquire) != T{}) return false;
        slot.store(value, release);
        if (++tail_ == capacity_) tail_ = 0;
        return true;
    }

    // The consumer.
    [[nodiscard]] bool try_pop(T& value) {
        Atomic<T>& slot = slots_[head_];
        const T found = slot.load(acquire);
        if (found == T{}) return false;
        slot.store(T{}, release);
        value = found;
        if (++head_ == capacity_) head_ = 0;
        return true;
    }

private:
    const std::size_t capacity_;
    const std::unique_ptr<Atomic<T>[]> slots_;
    alignas(cache_line) std::size_t tail_ = 0;
    alignas(cache_line) std::size_t head_ = 0;
};

}  // namespace callboard
