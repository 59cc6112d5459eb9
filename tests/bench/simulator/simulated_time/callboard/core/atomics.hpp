// In place of core/atomics.hpp: each operation takes simulated time at its cache line, for programs that find this
// folder first.
#pragma once

#include <atomic>
#include <cstddef>

#include "../../../machine.hpp"

namespace callboard {

inline constexpr auto relaxed = std::memory_order_relaxed;
inline constexpr auto acquire = std::memory_order_acquire;
inline constexpr auto release = std::memory_order_release;
inline constexpr auto acq_rel = std::memory_order_acq_rel;
inline constexpr auto seq_cst = std::memory_order_seq_cst;

inline constexpr std::size_t cache_line = 64;

inline void compiler_barrier() {}
inline void relax() {}

// One simulated thread runs at a time, in the order of simulated time. So plain values do.
template <class T>
class Atomic {
    using Order = std::memory_order;

public:
    static constexpr bool is_always_lock_free = true;

    Atomic() = default;
    Atomic(T value) : value_(value) {}
    Atomic(const Atomic&) = delete;

    T load(Order) const {
        simulated::read(this);
        return value_;
    }
    // A sequentially consistent one empties the store buffer, as a locked operation does.
    void store(T value, Order order) {
        if (order == seq_cst) simulated::update(this);
        else simulated::write(this);
        value_ = value;
    }
    T exchange(T value, Order) { return changed([&] { value_ = value; }); }
    T fetch_add(T value, Order) { return changed([&] { value_ += value; }); }
    T fetch_sub(T value, Order) { return changed([&] { value_ -= value; }); }
    T fetch_or(T value, Order) { return changed([&] { value_ |= value; }); }
    T fetch_and(T value, Order) { return changed([&] { value_ &= value; }); }
    bool compare_exchange_strong(T& expected, T value, Order, Order) {
        return compare_exchange_strong(expected, value, seq_cst);
    }
    bool compare_exchange_strong(T& expected, T value, Order) {
        simulated::update(this);
        if (value_ != expected) return expected = value_, false;
        return value_ = value, true;
    }
    bool compare_exchange_weak(T& expected, T value, Order, Order) {
        return compare_exchange_strong(expected, value, seq_cst);
    }
    bool compare_exchange_weak(T& expected, T value, Order) {
        return compare_exchange_strong(expected, value, seq_cst);
    }

private:
    template <class Change>
    T changed(Change change) {
        simulated::update(this);
        const T before = value_;
        change();
        return before;
    }

    T value_{};
};

}  // namespace callboard
