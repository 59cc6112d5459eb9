// The limits of a bounded mailbox: a count that senders raise and the receiver lowers, and the threads
// that wait for room. Unbounded mailboxes have no limits, and pay for one branch that is not taken.
//
// A waiter sleeps on its own parker, so that a worker is woken by whichever comes first: room, or work
// that other threads announce to it.
//
// Why no wake-up is lost. A waiter enters the list and counts itself, then looks at the count of
// messages. The receiver lowers that count, then looks for waiters. All four operations are seq_cst, so
// one thread sees the other: the waiter finds room, or the receiver finds the waiter, and unparks it. An
// unpark before the park is kept. An unpark may come late, because another reason woke the waiter first,
// or for room that others took. Then a later park returns early, and every thread that parks looks again.
//
// Why no thread touches a waiter that is gone. A waiter is unparked, and leaves, under the lock.
//
// Progress: reserve() and exceed() are lock-free, and so is give_back() when no thread waits.
#pragma once

#include <cassert>
#include <cstdint>
#include <mutex>

#include "callboard/core/atomics.hpp"
#include "callboard/core/memory/node.hpp"
#include "callboard/core/threads/parker.hpp"
#include "callboard/mailbox/delegation.hpp"

namespace callboard {

class Limits {
public:
    Limits(std::int64_t capacity, std::int64_t timeout_ns, bool senders_pop = false)
        : capacity(capacity), timeout_ns(timeout_ns), senders_pop(senders_pop) {
        assert(capacity > 0);
    }

    static constexpr std::int64_t no_capacity = INT64_MAX;  // of a mailbox that is prioritised, or only counted

    const std::int64_t capacity;    // messages
    const std::int64_t timeout_ns;  // the longest wait for room; for throttle, the length of each wait
    const bool senders_pop;         // a sender without room takes the oldest message out (drop_oldest)

    // Without a capacity there are two counts that only grow, of sent and of taken messages. Then senders need one
    // atomic operation for a message, and the receiver needs none.
    bool only_counts() const { return capacity == no_capacity; }

    // Any thread. Takes room for up to `wanted` messages; returns for how many.
    std::int64_t reserve(std::int64_t wanted) {
        if (only_counts()) {
            exceed(wanted);
            return wanted;
        }
        std::int64_t count = count_.load(relaxed);
        for (;;) {
            const std::int64_t room = capacity - count;
            const std::int64_t taken = wanted < room ? wanted : room > 0 ? room : 0;
            assert(wanted >= 0 && count >= 0 && "a limit is never negative");
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
        assert(messages >= 0);
        note_peak(count_.fetch_add(messages, relaxed) + messages - taken_.load(relaxed));
    }

    // Any thread. Returns room that it took and does not use.
    void take_back(std::int64_t messages) {
        if (only_counts()) count_.fetch_sub(messages, relaxed);
        else give_back(messages);
    }

    // The receiver, or a thread that drops a message. seq_cst pairs with wait_for_room().
    void give_back(std::int64_t messages) {
        assert(messages >= 0 && count_.load(relaxed) >= messages && "no more is given back than was taken");
        if (only_counts()) {  // the receiver alone is here
            taken_.store(taken_.load(relaxed) + messages, relaxed);
            return;
        }
        count_.fetch_sub(messages, seq_cst);
        if (waiting_.load(seq_cst) != 0) wake_all();
    }

    // Any thread, with its own parker. Sleeps until there may be room, until another thread unparks
    // it for another reason, or for `nanoseconds`. seq_cst pairs with give_back().
    void wait_for_room(Parker& parker, std::int64_t nanoseconds) {
        Waiter self{&parker, nullptr, nullptr};
        enter(self);
        waiting_.fetch_add(1, seq_cst);
        if (count_.load(seq_cst) >= capacity) parker.park(nanoseconds);
        waiting_.fetch_sub(1, relaxed);
        leave(self);
    }

    // A hint: another sender may take the room in the next moment.
    bool has_room() const { return count_.load(relaxed) < capacity; }

    // A hint: the two counts may be of different moments.
    std::int64_t count() const {
        const std::int64_t taken = taken_.load(relaxed);
        const std::int64_t count = count_.load(relaxed) - taken;
        return count > 0 ? count : 0;
    }

    // Messages that were refused or dropped. Any thread counts, and any reads.
    Atomic<std::uint64_t> dropped{0};
    // The largest number of waiting messages so far.
    Atomic<std::int64_t> peak{0};
    // The thread that dispatches the receiver, or null: a sender further down that thread's stack
    // must not wait for it.
    Atomic<const void*> runner{nullptr};

    // The right to pop, where senders may pop, too. A request asks to drop the oldest message.
    CountedDelegation popping;

private:
    struct Waiter {
        Parker* parker;
        Waiter* before;
        Waiter* behind;
    };

    void enter(Waiter& waiter) {
        const std::lock_guard<std::mutex> guard(lock_);
        assert(waiter.before == nullptr && waiters_ != &waiter && "a waiter is in the list once");
        waiter.behind = waiters_;
        if (waiters_ != nullptr) waiters_->before = &waiter;
        waiters_ = &waiter;
    }

    void leave(Waiter& waiter) {
        const std::lock_guard<std::mutex> guard(lock_);
        assert((waiter.before == nullptr ? waiters_ : waiter.before->behind) == &waiter && "a waiter leaves once");
        assert(waiter.behind == nullptr || waiter.behind->before == &waiter);
        (waiter.before == nullptr ? waiters_ : waiter.before->behind) = waiter.behind;
        if (waiter.behind != nullptr) waiter.behind->before = waiter.before;
    }

    void wake_all() {
        const std::lock_guard<std::mutex> guard(lock_);
        for (Waiter* waiter = waiters_; waiter != nullptr; waiter = waiter->behind)
            waiter->parker->unpark();
    }

    void note_peak(std::int64_t count) {
        assert(count >= 0 && "a limit is never negative");
        std::int64_t most = peak.load(relaxed);
        while (count > most && !peak.compare_exchange_weak(most, count, relaxed, relaxed)) {}
    }

    alignas(cache_line) Atomic<std::int64_t> count_{0};
    Atomic<std::int64_t> taken_{0};     // of these, in a mailbox without a capacity; else 0
    Atomic<std::uint32_t> waiting_{0};  // the threads that wait; each is in the list
    std::mutex lock_;
    Waiter* waiters_{nullptr};          // under the lock
};

}  // namespace callboard
