// What bounds a mailbox: a count that senders raise and the receiver lowers, and a place for outside
// threads to wait for room. Unbounded mailboxes have none of this, and pay one untaken branch.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <ctime>
#include <unistd.h>
#include <cstdint>

#include "callboard/core/atomics.hpp"
#include "callboard/core/node.hpp"
#include "callboard/mailbox/delegation.hpp"

namespace callboard {

enum class Overflow : std::uint8_t { block, help, drop_newest, drop_oldest, fail, throttle };

// A request to drop the oldest message, handed to whoever is popping (overflow drop_oldest).
struct DropRequest {
    DropRequest* next{nullptr};
    DropRequest*& delegation_next() { return next; }
};

class Limits {
public:
    Limits(std::int64_t capacity, Overflow overflow, std::int64_t timeout_ns)
        : capacity(capacity), timeout_ns(timeout_ns), overflow(overflow) {}

    const std::int64_t capacity;    // messages; INT64_MAX for a mailbox that is only prioritised
    const std::int64_t timeout_ns;  // the longest wait for room; for throttle, the slice to wait
    const Overflow overflow;

    // Any thread. Room for up to `wanted` messages is taken; returns how many.
    std::int64_t reserve(std::int64_t wanted) {
        std::int64_t count = count_.load(relaxed);
        for (;;) {
            const std::int64_t room = capacity - count;
            const std::int64_t taken = wanted < room ? wanted : room > 0 ? room : 0;
            if (taken == 0) return 0;
            // relaxed: the count says nothing about the messages, the queue publishes those.
            if (count_.compare_exchange_weak(count, count + taken, relaxed, relaxed)) {
                note_peak(count + taken);
                return taken;
            }
        }
    }

    // Any thread. Takes room past the capacity (throttle, and messages that must not be refused).
    void exceed(std::int64_t messages) {
        note_peak(count_.fetch_add(messages, relaxed) + messages);
    }

    // The receiver, and whoever drops a message. seq_cst on the four operations of give_back() and
    // wait_for_room(): each side writes its own word and then reads the other's, and one of them
    // must see the other's write, or a waiter sleeps beside an empty mailbox.
    void give_back(std::int64_t messages) {
        count_.fetch_sub(messages, seq_cst);
        if (waiters_.load(seq_cst) != 0) {
            epoch_.fetch_add(1, release);
            syscall(SYS_futex, &epoch_, FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0);
        }
    }

    // An outside thread. Sleeps until there may be room, `nanoseconds` at most.
    void wait_for_room(std::int64_t nanoseconds) {
        waiters_.fetch_add(1, seq_cst);
        const std::uint32_t epoch = epoch_.load(acquire);
        if (count_.load(seq_cst) >= capacity) {
            timespec time{nanoseconds / 1000000000, nanoseconds % 1000000000};
            syscall(SYS_futex, &epoch_, FUTEX_WAIT_PRIVATE, epoch, &time, nullptr, 0);
        }
        waiters_.fetch_sub(1, relaxed);
    }

    std::int64_t count() const { return count_.load(relaxed); }

    // Any thread counts a message that it refused or dropped; anyone reads.
    Atomic<std::uint64_t> dropped{0};
    // The most messages that ever waited.
    Atomic<std::int64_t> peak{0};
    // The thread that dispatches the receiver, or null: a sender further down that thread's stack
    // must not wait for it.
    Atomic<const void*> runner{nullptr};

    // Who may pop, where senders may (drop_oldest).
    Delegation<DropRequest> popping;

private:
    void note_peak(std::int64_t count) {
        std::int64_t most = peak.load(relaxed);
        while (count > most && !peak.compare_exchange_weak(most, count, relaxed, relaxed)) {}
    }

    alignas(cache_line) Atomic<std::int64_t> count_{0};
    Atomic<std::uint32_t> epoch_{0};
    Atomic<std::uint32_t> waiters_{0};
};

}  // namespace callboard
