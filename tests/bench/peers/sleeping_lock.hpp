// A lock of one word, whose waiters spin for a moment and then sleep: Drepper 2011, "Futexes are tricky", section 6.
//
// Ten of them fit where one std::mutex does, so a lock lies in one line with what it guards. How often to look is
// the user's choice: a lock that is held for a few dozen nanoseconds is free before a waiter would be asleep. It is
// not if its holder waits itself, or has lost its core to a thread that looks.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cassert>
#include <cstdint>

#include "callboard/core/atomics.hpp"

namespace callboard {

template <int looks>
class SleepingLock {
public:
    // Acquire, here and below, pairs with the release in unlock().
    void lock() {
        std::uint32_t state = open;
        if (__builtin_expect(!word_.compare_exchange_strong(state, closed, acquire, relaxed), 0)) wait();
    }

    bool try_lock() {
        std::uint32_t state = open;
        return word_.load(relaxed) == open && word_.compare_exchange_strong(state, closed, acquire, relaxed);
    }

    void unlock() {
        assert(word_.load(relaxed) != open && "who unlocks has locked");
        if (__builtin_expect(word_.exchange(open, release) == awaited, 0))
            syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    }

private:
    static constexpr std::uint32_t open = 0, closed = 1, awaited = 2;

    __attribute__((noinline)) void wait() {
        for (int look = 0; look < looks; ++look) {
            relax();
            if (try_lock()) return;
        }
        // A thread that slept leaves it `awaited`, as others may be asleep still. At worst that costs one wake-up.
        while (word_.exchange(awaited, acquire) != open)
            syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, awaited, nullptr, nullptr, 0);
    }

    Atomic<std::uint32_t> word_{open};
};

}  // namespace callboard
