// Lamport's queue with remembered indices, to measure mailbox/ordered/spsc.hpp against.
//
// Lamport's queue, with cached indices, as in FastForward's and FastFlow's descendants: each end
// remembers the other end's index as it last saw it. It reads the index itself, and pays for the cache
// line, only when the ring seems full or empty by its copy.
//
// Why it is right. Each index has one writer and only grows. The producer stores the value and then, with
// release, the tail. The consumer that acquires the tail sees the value. The consumer moves the value out
// and then, with release, stores the head. The producer that acquires the head overwrites an empty slot.
// An end's copy is a former value of an index that only grows, so it errs on the safe side: too full for
// the producer, too empty for the consumer. Then the end reads the index.
//
// "One producer" means one at a time. The role may pass from thread to thread if a release and an acquire
// order them (by a lock, a flag or a counter). The same holds for the consumer.
//
// Progress: wait-free.
#pragma once

#include <cassert>
#include <utility>

#include "callboard/core/atomics.hpp"
#include "callboard/core/one_at_a_time.hpp"
#include "callboard/mailbox/ordered/ring.hpp"

namespace callboard {

// T is default-constructible and movable; a slot keeps the moved-from value.
template <class T>
class Lamport : OneAtATime<Producer>, OneAtATime<Consumer> {
public:
    // Room for `capacity` values, rounded up to a power of two.
    explicit Lamport(std::size_t capacity) : slots_(capacity) {}

    // The producer. False: no room.
    [[nodiscard]] bool try_push(T value) {
        const Alone<Producer> alone(*this);
        const std::int64_t tail = tail_.load(relaxed);
        assert(head_seen_ <= tail && tail - head_seen_ <= slots_.capacity());
        if (tail - head_seen_ == slots_.capacity()) {
            head_seen_ = head_.load(acquire);  // pairs with discard()
            assert(head_seen_ <= tail && "no more is taken than was put");
            if (tail - head_seen_ == slots_.capacity()) return false;
        }
        slots_[tail] = std::move(value);
        tail_.store(tail + 1, release);  // pairs with peek()
        return true;
    }

    // The consumer. The oldest value, which stays in the ring; null if there is none.
    [[nodiscard]] T* peek() {
        const Alone<Consumer> alone(*this);
        const std::int64_t head = head_.load(relaxed);
        assert(head <= tail_seen_ && "no more is taken than was put");
        if (head == tail_seen_) {
            tail_seen_ = tail_.load(acquire);  // pairs with try_push()
            assert(tail_seen_ - head <= slots_.capacity() && "the ring is never overfull");
            if (head == tail_seen_) return nullptr;
        }
        return &slots_[head];
    }

    // The consumer, after peek() gave a value: takes it out of the ring.
    void discard() { head_.store(head_.load(relaxed) + 1, release); }  // pairs with try_push()

    // The consumer. False: there is none.
    [[nodiscard]] bool try_pop(T& value) {
        const Alone<Consumer> alone(*this);
        T* const oldest = peek();
        if (oldest == nullptr) return false;
        value = std::move(*oldest);
        discard();
        return true;
    }

    // Any thread, a hint. The producer gets at least the true number, the consumer at most that.
    std::int64_t size() const {
        const std::int64_t head = head_.load(relaxed);
        const std::int64_t size = tail_.load(relaxed) - head;
        return size < 0 ? 0 : size;  // the two loads are not one moment
    }

    std::int64_t capacity() const { return slots_.capacity(); }

private:
    const Ring<T> slots_;
    alignas(cache_line) Atomic<std::int64_t> tail_{0};  // the producer
    std::int64_t head_seen_ = 0;
    alignas(cache_line) Atomic<std::int64_t> head_{0};  // the consumer
    std::int64_t tail_seen_ = 0;
};

}  // namespace callboard
