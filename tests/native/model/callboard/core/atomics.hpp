// In place of core/atomics.hpp: each operation is an event of the checker, for programs that find this folder first.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "../../operations.hpp"

namespace callboard {

inline constexpr auto relaxed = std::memory_order_relaxed;
inline constexpr auto acquire = std::memory_order_acquire;
inline constexpr auto release = std::memory_order_release;
inline constexpr auto acq_rel = std::memory_order_acq_rel;
inline constexpr auto seq_cst = std::memory_order_seq_cst;

inline constexpr std::size_t cache_line = 64;

#define MODEL_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

template <class T>
class Atomic {
    static_assert(sizeof(T) <= sizeof(std::uint64_t));
    using Order = std::memory_order;
    using Does = model::Does;

public:
    static constexpr bool is_always_lock_free = true;

    Atomic() : Atomic(T{}, "Atomic()", 0) {}
    Atomic(T value, MODEL_SITE) : id_(model::make_location(word(value), {file, line})) {}
    Atomic(const Atomic&) = delete;
    ~Atomic() {
        if (id_ == model::none) model::fail("an object ends twice");
        model::end_location(id_, {"~Atomic", 0});
        id_ = model::none;
    }

    T load(Order order, MODEL_SITE) const {
        return update(Does::load, T{}, T{}, order, order, {file, line}).first;
    }
    void store(T value, Order order, MODEL_SITE) {
        model::store(id_, word(value), order, {file, line});
    }
    T exchange(T value, Order order, MODEL_SITE) {
        return update(Does::exchange, value, T{}, order, order, {file, line}).first;
    }
    T fetch_add(T value, Order order, MODEL_SITE) {
        return update(Does::add, value, T{}, order, order, {file, line}).first;
    }
    T fetch_sub(T value, Order order, MODEL_SITE) {
        return update(Does::add, static_cast<T>(0 - value), T{}, order, order, {file, line}).first;
    }
    T fetch_or(T value, Order order, MODEL_SITE) {
        return update(Does::set_bits, value, T{}, order, order, {file, line}).first;
    }
    T fetch_and(T value, Order order, MODEL_SITE) {
        return update(Does::keep_bits, value, T{}, order, order, {file, line}).first;
    }
    bool compare_exchange_strong(T& expected, T value, Order success, Order failure, MODEL_SITE) {
        const auto [found, updates] = update(Does::compare, value, expected, success, failure, {file, line});
        if (!updates) expected = found;
        return updates;
    }
    bool compare_exchange_strong(T& expected, T value, Order order, MODEL_SITE) {
        const Order failure = order == acq_rel ? acquire : order == release ? relaxed : order;
        return compare_exchange_strong(expected, value, order, failure, file, line);
    }
    // It does not fail without a reason: that is as if the loop around it looked once more.
    bool compare_exchange_weak(T& expected, T value, Order success, Order failure, MODEL_SITE) {
        return compare_exchange_strong(expected, value, success, failure, file, line);
    }
    bool compare_exchange_weak(T& expected, T value, Order order, MODEL_SITE) {
        return compare_exchange_strong(expected, value, order, file, line);
    }

private:
    static std::uint64_t word(T value) {
        std::uint64_t word = 0;
        std::memcpy(&word, &value, sizeof(T));
        return word;
    }
    static T value(std::uint64_t word) {
        T value;
        std::memcpy(&value, &word, sizeof(T));
        return value;
    }

    std::pair<T, bool> update(Does does, T operand, T expected, Order success, Order failure, model::Site site) const {
        model::Access what;
        what.does = does;
        what.location = id_;
        what.success = success;
        what.failure = failure;
        what.operand = word(operand);
        what.expected = word(expected);
        if constexpr (sizeof(T) < sizeof(std::uint64_t)) what.mask = (std::uint64_t{1} << 8 * sizeof(T)) - 1;
        what.site = site;
        const model::Found found = model::access(what);
        return {value(found.value), found.updated};
    }

    model::Id id_;
};

inline void compiler_barrier(MODEL_SITE) { model::fence(model::Kind::light_fence, {file, line}); }

inline void relax() { model::pause(); }

}  // namespace callboard
