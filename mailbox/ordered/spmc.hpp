// A bounded ring between one producer and many consumers, for small values.
//
// It works like the run queues of Go's scheduler: a consumer reads the value first and then claims it by a
// compare-and-swap on the head. The claim is the last step, so a consumer that is stopped in the middle
// holds nothing back. `full` and `empty` mean just that: the ring is strictly linearizable, unlike
// Worklist. The price is that values are atomic, because a consumer may read one that it then does not get.
//
// Why it is right. Tail has one writer, head grows by one with each claim. A consumer that saw head h and
// then tail > h reads slot h, which the producer stored before that tail. The producer writes that slot
// again only when it has seen head > h; then the claim h to h + 1 fails, whatever was read. So each value
// is claimed once, in order. The same is true of several slots that are claimed at once.
//
// A serial number that is skipped has no value. No consumer claims it: head passes it before tail does, so a consumer
// that sees such a tail and an older head fails to claim.
//
// Progress: push and skip are wait-free, pop lock-free (a failed claim means that another consumer got through).
#pragma once

#include <cassert>

#include "callboard/core/atomics.hpp"
#include "callboard/core/one_at_a_time.hpp"
#include "callboard/mailbox/ordered/ring.hpp"

namespace callboard {

// T is small enough for a lock-free atomic.
template <class T>
class Spmc : OneAtATime<Producer> {
public:
    // Room for `capacity` values, rounded up to a power of two.
    explicit Spmc(std::size_t capacity) : slots_(capacity) {}

    // One producer at a time. False: no room.
    [[nodiscard]] bool try_push(T value) {
        const Alone<Producer> alone(*this);
        const std::int64_t tail = tail_.load(relaxed);
        assert(head_seen_ <= tail && tail - head_seen_ <= slots_.capacity());
        if (tail - head_seen_ == slots_.capacity()) {
            head_seen_ = head_.load(acquire);  // pairs with the claim
            assert(head_seen_ <= tail && "no more is taken than was put");
            if (tail - head_seen_ == slots_.capacity()) return false;
        }
        slots_[tail].store(value, relaxed);
        // Release pairs with try_pop(). seq_cst with size().
        tail_.store(tail + 1, seq_cst);
        return true;
    }

    // The producer, instead of a push: the next serial number has no value. False: earlier values are still there.
    [[nodiscard]] bool try_skip() {
        const Alone<Producer> alone(*this);
        const std::int64_t tail = tail_.load(relaxed);
        if (head_.load(acquire) != tail) return false;  // pairs with the claim, as in try_push()
        head_.store(head_seen_ = tail + 1, relaxed);
        tail_.store(tail + 1, release);  // pairs with try_pop(), whose claim fails
        return true;
    }

    // Any thread. False: the ring is empty.
    [[nodiscard]] bool try_pop(T& value) {
        std::int64_t first;
        return try_pop(&value, 1, first) == 1;
    }

    // Any thread. Takes the oldest values, `most` of them at most, by one claim, and returns how many. `first`
    // is the serial number of the first one; they count from 0 in the order of pushes. A consumer that does not
    // insist gives up when another one is faster, and gets nothing, though values may wait. This is for consumers that
    // have other work: with n that insist, the head moves from core to core n times for each claim.
    [[nodiscard]] std::int64_t try_pop(T* values, std::int64_t most, std::int64_t& first, bool insist = true) {
        assert(most > 0);
        first = head_.load(acquire);  // pairs with the claim before: tail is seen beyond it
        for (;;) {
            const std::int64_t there = tail_.load(acquire) - first;  // pairs with try_push()
            const std::int64_t count = there < most ? there : most;
            if (count <= 0) return 0;
            for (std::int64_t i = 0; i < count; ++i) values[i] = slots_[first + i].load(relaxed);
            // Release: the slots were read, the producer may write them again. Acquire as above.
            if (head_.compare_exchange_weak(first, first + count, acq_rel, acquire)) return count;
            if (!insist) return 0;
        }
    }

    // Any thread. A hint, and a guarantee for a thread that goes to sleep. Say that it announces its
    // sleep by a seq_cst write and then finds 0 here. A producer that pushes and then reads the
    // announcement with seq_cst sees it. (Each thread writes one word and then reads the other's;
    // with less than seq_cst, both could miss.)
    std::int64_t size() const {
        const std::int64_t tail = tail_.load(seq_cst);
        const std::int64_t size = tail - head_.load(relaxed);
        return size < 0 ? 0 : size;  // the two loads are not one moment
    }

private:
    static_assert(Atomic<T>::is_always_lock_free, "a value that takes no lock to read");

    const Ring<Atomic<T>> slots_;
    alignas(cache_line) Atomic<std::int64_t> tail_{0};  // the producer
    std::int64_t head_seen_ = 0;
    alignas(cache_line) Atomic<std::int64_t> head_{0};  // consumers
};

}  // namespace callboard
