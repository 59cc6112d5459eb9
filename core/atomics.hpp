// Atomic operations: the only file that includes <atomic>, so that the model checker can replace it.
//
// Rules. Every operation names its memory order. A comment beside an order stronger than relaxed names
// the operation that it pairs with. Standalone fences are forbidden, because ThreadSanitizer does not
// see them. So is seq_cst without a reason.
#pragma once

#include <atomic>
#include <cstddef>

namespace callboard {

template <class T>
using Atomic = std::atomic<T>;

inline constexpr auto relaxed = std::memory_order_relaxed;
inline constexpr auto acquire = std::memory_order_acquire;
inline constexpr auto release = std::memory_order_release;
inline constexpr auto acq_rel = std::memory_order_acq_rel;
inline constexpr auto seq_cst = std::memory_order_seq_cst;

// The distance between fields that different threads write. 64 bytes is the line of x86-64 and of the aarch64
// server cores; the adjacent-line prefetcher of x86 made no measurable difference.
inline constexpr std::size_t cache_line = 64;

// Keeps the compiler from moving loads and stores across. It orders nothing between cores: see biased_lock.hpp.
inline void compiler_barrier() { std::atomic_signal_fence(std::memory_order_seq_cst); }

// Tells the core that this is a waiting loop.
inline void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace callboard
