// A biased lock: its owner needs no atomic read-modify-write and no fence, because other threads seldom lock it.
//
// Quickly reacquirable locks (Dice, Moir, Scherer 2003) on asymmetric barriers. Owner and visitor each announce
// themselves, and then look for the other (Dekker). That is correct only if each one's announcement is seen
// before its look. The visitor pays for both: membarrier(2) makes every running thread of the process pass a full
// barrier. If the owner's announcement was before that barrier, the visitor sees it. Otherwise the owner's look
// comes after the barrier, and sees the visitor's announcement. It costs the visitor some microseconds.
//
// Rules:
//   1. The owner announces itself by `owner_`, then looks at `visitor_`. If a visitor is there, the owner takes
//      its announcement back and waits for the end of the visit: the visitor goes first. (If it did not, a
//      visitor would never get in: its barrier lasts longer than the owner stays away.)
//   2. A visitor announces itself by `visitor_`, which only one can do at a time, passes the barrier, and then
//      looks at `owner_`. An owner that is still there came before, and will be gone in a moment. If it stays, it
//      has lost its core, and the visitor goes away.
//   3. Both release by a release store, which pairs with the acquire loads of the looks. So the actions of one
//      under the lock happen before those of the next.
//
// Where the kernel has no membarrier, and without prepare(), the owner's announcement is a sequentially consistent
// exchange.
#pragma once

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cassert>

#include "callboard/core/atomics.hpp"

namespace callboard {

class BiasedLock {
public:
    // Before the first use. Makes the process known to the kernel for its barriers: once, and where it has several
    // threads already that takes milliseconds.
    void prepare() {
        assert(!owner_.load(relaxed) && !visitor_.load(relaxed) && "before the first use");
        is_asymmetric_ = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
    }

    // The owner, one thread at a time. Waits for a visit to end, which is short.
    void lock() {
        assert(!owner_.load(relaxed) && "an owner locks once");
        announce();
        // Acquire pairs with leave(); seq_cst, with the visitor's exchange, without a membarrier.
        if (__builtin_expect(visitor_.load(seq_cst), 0)) lock_after_visit();
    }

    // Release pairs with the next visitor's look.
    void unlock() { owner_.store(false, release); }

    // Any other thread. False: another visitor is there, or the owner does not leave.
    [[nodiscard]] bool try_visit() {
        if (visitor_.load(relaxed) || visitor_.exchange(true, seq_cst)) return false;
        if (!is_asymmetric_ || membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) {
            for (int attempt = 0; attempt < patience; ++attempt) {
                // Acquire pairs with unlock(); seq_cst, with the exchange in announce(), without a membarrier.
                if (!owner_.load(seq_cst)) return true;
                relax();
            }
        }
        leave();
        return false;
    }

    // Release pairs with the owner's look, and with the next visitor's exchange.
    void leave() { visitor_.store(false, release); }

private:
    static constexpr int patience = 1000;  // attempts: some microseconds

    void announce() {
        if (__builtin_expect(is_asymmetric_, 1)) {
            owner_.store(true, relaxed);
            compiler_barrier();  // pairs with the visitor's membarrier
        } else {
            owner_.exchange(true, seq_cst);  // pairs with the visitor's exchange
        }
    }

    __attribute__((noinline)) void lock_after_visit() {
        do {
            unlock();
            for (int attempt = 0; visitor_.load(relaxed); ++attempt) pause(attempt);  // the look below acquires
            announce();
        } while (visitor_.load(seq_cst));
    }

    static void pause(int attempt) {
        if (attempt < patience) relax();
        else sched_yield();  // the visitor has lost its core
    }

    static bool membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0) == 0; }

    Atomic<bool> owner_{false};
    Atomic<bool> visitor_{false};
    bool is_asymmetric_{false};
};

}  // namespace callboard
