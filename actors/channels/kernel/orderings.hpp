// The memory orderings by which no wake-up is lost, for channels under one lock and between threads.
//
// A waiter announces itself in a word, and then looks whether its side is ready. The other side makes it ready
// ("publishes"), and then looks into the word (Dekker). It is enough that one of the two sees the other.
//
// Locked: both use the channel under one lock, such as the interpreter's. One comes after the other.
//
// Concurrent: the word also says how its publishers look, for as long as nobody waits.
//   - Counted (an odd number): by a read-modify-write, as the announcement is one. So one comes after the other in the
//     word's modification order. If the announcement comes first, the look sees it. Otherwise the announcement reads
//     from the look, or from a read-modify-write after it, and acquires what was published before the look. So the
//     waiter sees that its side is ready. (All writes of the word are read-modify-writes.)
//   - Light (zero): by a load alone. Then the waiter pays for both, as in core/threads/biased_lock.hpp: it announces
//     itself, and passes a membarrier(2) before it looks. A publisher whose look comes before that barrier has
//     published before it, so the waiter sees that. A publisher whose look comes after it sees the waiter.
// A read-modify-write after each value would take several times as long as the value, since it waits until the other
// core has given the value's cache line away. A membarrier takes some microseconds. So a word becomes light when so
// many looks in a row found nobody that they cost as much as a barrier, and counted again with the next waiter. Then a
// stream of values passes without a fence, and two sides that wait for each other, without a system call.
//
// Why the change from one to the other is safe. Only a look makes a word light, so the next announcement reads zero,
// or a waiter that was put over zero. A waiter that finds zero passes the barrier. A publisher may read zero although
// the word is counted by now: then a waiter was put over that zero, and its barrier came after the publisher's look.
// So that waiter has seen what was published.
//
// Where the kernel has no membarrier, no word becomes light.
//
// Progress: wait-free. A counted look fails only if another thread came between; there are few.
#pragma once

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cassert>
#include <cstddef>
#include <cstdint>

#include "callboard/core/atomics.hpp"

namespace callboard {

struct Wakeable;

// Each is one word. look() is after publishing: false if nobody waits. announce() gives who was announced before.
// `apart` is the alignment of the words that the two sides write. Under one lock they lie side by side, since one core
// at a time has all of them.
class Locked {
public:
    static constexpr std::size_t apart = alignof(void*);

    static void prepare() {}

    bool look() { return waiter_.load(relaxed) != nullptr; }

    Wakeable* announce(Wakeable* who) {
        Wakeable* const before = waiter_.load(relaxed);
        waiter_.store(who, relaxed);
        return before;
    }

    Wakeable* take() { return announce(nullptr); }

    bool withdraw(Wakeable* who) {
        if (waiter_.load(relaxed) != who) return false;
        waiter_.store(nullptr, relaxed);
        return true;
    }

private:
    Atomic<Wakeable*> waiter_{nullptr};
};

// Tests give fewer looks, or so many that no word becomes light.
template <std::uintptr_t looks>
class BasicConcurrent {
public:
    static constexpr std::size_t apart = cache_line;

    // Makes the process known to the kernel for its barriers, as the first word does that becomes light: where there
    // are several threads already, that takes ten milliseconds.
    static void prepare() { (void)has_barrier(); }

    bool look() {
        compiler_barrier();  // pairs with the barrier in announce()
        const std::uintptr_t state = state_.load(relaxed);
        return __builtin_expect(state != light, 0) && look_counted(state);
    }

    // Acquire pairs with look_counted(), release with take().
    Wakeable* announce(Wakeable* who) {
        assert(!(reinterpret_cast<std::uintptr_t>(who) & counted));
        const std::uintptr_t before = state_.exchange(reinterpret_cast<std::uintptr_t>(who), acq_rel);
        if (before == light) pass_barrier();
        return waiter_in(before);
    }

    // Acquire pairs with announce(), so the taker sees the whole Wakeable; release with withdraw().
    Wakeable* take() { return waiter_in(state_.exchange(fresh, acq_rel)); }

    // Acquire pairs with take(): a waiter that comes too late sees why it was taken out.
    bool withdraw(Wakeable* who) {
        auto state = reinterpret_cast<std::uintptr_t>(who);
        return state_.compare_exchange_strong(state, fresh, acquire);
    }

private:
    static constexpr std::uintptr_t light = 0, counted = 1, fresh = 2 * looks + counted;

    static Wakeable* waiter_in(std::uintptr_t state) {
        return state & counted ? nullptr : reinterpret_cast<Wakeable*>(state);
    }

    // Release pairs with announce().
    __attribute__((noinline)) bool look_counted(std::uintptr_t state) {
        while (state & counted) {
            std::uintptr_t next = state - 2;
            if (state == counted) next = has_barrier() ? light : fresh;
            if (state_.compare_exchange_weak(state, next, release, relaxed)) return false;
        }
        return state != light;
    }

    static bool has_barrier() {
        static const bool has = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
        return has;
    }

    static void pass_barrier() {
        [[maybe_unused]] const bool passed = membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
        assert(passed && "the process is known to the kernel since a word became light");
    }

    static bool membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0) == 0; }

    Atomic<std::uintptr_t> state_{fresh};
};

using Concurrent = BasicConcurrent<64>;

}  // namespace callboard
