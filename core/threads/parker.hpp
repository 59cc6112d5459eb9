// A parker puts its owner's thread to sleep and lets any thread wake it, without losing a wake-up.
//
// It is one word in one of four states. An unpark() before park() makes that park() return at once.
// So the owner may check its queues, find nothing and park without a race. A wake-up costs a system
// call only when the owner really sleeps. It uses Linux futexes directly: a condition variable
// would add a mutex and a second wake-up.
#pragma once

#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cassert>
#include <cstdint>
#include <ctime>

#include "callboard/core/atomics.hpp"
#include "callboard/core/clock.hpp"

namespace callboard {

class Parker {
public:
    // The owner. Sleeps until unpark(), or for `nanoseconds` if that is not negative. Returns false if the time
    // was up. Acquire pairs with the release in unpark(); relaxed is enough where the word is read again before
    // the owner acts upon it.
    bool park(std::int64_t nanoseconds = -1) {
        std::uint32_t state = empty;
        if (!word_.compare_exchange_strong(state, parked, relaxed)) {
            assert(state == notified && "the owner alone parks");
            // It was `notified`, and only the owner leaves that state. A plain store would be wrong: another
            // unpark() may have come since. The store would erase it, although the owner's next look at its
            // queues need not see what that unpark announced. The exchange reads from the last unpark and
            // acquires all that came before it.
            word_.exchange(empty, acquire);
            return true;
        }
        const std::int64_t deadline = nanoseconds < 0 ? -1 : monotonic_ns() + nanoseconds;
        for (;;) {
            std::int64_t left = -1;
            if (deadline >= 0) {
                left = deadline - monotonic_ns();
                if (left <= 0) break;
            }
            wait(left);
            state = notified;
            if (word_.compare_exchange_strong(state, empty, acquire)) return true;
            assert(state == parked && "the owner alone ends its park");
        }
        return word_.exchange(empty, acquire) == notified;
    }

    // The owner. Sleeps in `wait`, which may poll descriptors: it returns when `wake_fd`, an eventfd, can be read,
    // or earlier. Returns true if there was an unpark(). A thread may write to the eventfd after that, so it must
    // outlive the parker. A later sleep may have a spurious wake-up, and reads the eventfd.
    template <class Wait>
    bool park_by(int wake_fd, Wait&& wait) {
        assert(wake_fd >= 0);
        std::uint32_t state = empty;
        if (word_.compare_exchange_strong(state, listening + static_cast<std::uint32_t>(wake_fd), relaxed)) wait();
        assert((state == empty || state == notified) && "the owner alone parks");
        return word_.exchange(empty, acquire) == notified;
    }

    // Any thread. Returns true if it had to wake a sleeping owner.
    bool unpark() {
        const std::uint32_t before = word_.exchange(notified, release);
        if (before == empty || before == notified) return false;
        if (before == parked) syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
        else eventfd_write(static_cast<int>(before - listening), 1);
        return true;
    }

    // Any thread, a hint: for tests that want their owner asleep.
    bool is_parked() const {
        const std::uint32_t state = word_.load(relaxed);
        return state != empty && state != notified;
    }

private:
    static constexpr std::uint32_t empty = 0, parked = 1, notified = 2;
    static constexpr std::uint32_t listening = 3;  // and above: sleeps on the eventfd of this value less `listening`

    void wait(std::int64_t nanoseconds) {
        timespec time{nanoseconds / 1000000000, nanoseconds % 1000000000};
        syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, parked, nanoseconds < 0 ? nullptr : &time,
                nullptr, 0);
    }

    Atomic<std::uint32_t> word_{empty};
};

}  // namespace callboard
