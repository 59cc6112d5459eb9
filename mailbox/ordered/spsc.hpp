// A bounded ring between one producer and one consumer.
//
// FastForward (Giacomoni, Moseley, Vachharajani 2008): a slot says itself whether it is full, and each end keeps its
// place to itself. So a value costs the transfer of one cache line from core to core, and several values in a line
// share it. Rejected: Lamport's queue, whose ends read each other's index. With remembered indices it costs about
// twice as much between two cores (tests/bench/peers/lamport.hpp, and docs/design/channels.md). Rejected: null for an
// empty slot, as the paper has it. It saves up to a third in long rings, and streams have null for an empty batch.
//
// Why it is right. The producer alone fills a slot, and the consumer alone empties it. The producer stores the value
// and then, with release, that the slot is full. The consumer that acquires this sees the value. The consumer moves the
// value out and then, with release, stores that the slot is empty. The producer that acquires this overwrites an empty
// slot.
//
// "One producer" means one at a time. The role may pass from thread to thread if a release and an acquire
// order them (by a lock, a flag or a counter). The same holds for the consumer.
//
// Progress: wait-free.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "callboard/core/atomics.hpp"
#include "callboard/core/one_at_a_time.hpp"

namespace callboard {

// T is default-constructible and movable; a slot keeps the moved-from value. `apart` is the alignment of the words that
// the two ends write: less than a cache line where one thread at a time has both.
template <class T, std::size_t apart = cache_line>
class Spsc : OneAtATime<Producer>, OneAtATime<Consumer> {
public:
    // Room for exactly `capacity` values.
    explicit Spsc(std::size_t capacity) : slots_(new Slot[capacity]), capacity_(static_cast<std::int64_t>(capacity)) {
        assert(capacity > 0);
    }

    // The producer. relaxed: try_push() looks again.
    [[nodiscard]] bool has_room() const {
        const Alone<Producer> alone(*this);
        return !slots_[tail_place_].is_full.load(relaxed);
    }

    // The producer. False: no room.
    [[nodiscard]] bool try_push(T value) {
        const Alone<Producer> alone(*this);
        Slot& slot = slots_[tail_place_];
        if (slot.is_full.load(acquire)) return false;  // pairs with discard()
        tail_place_ = following(tail_place_);
        const std::int64_t tail = tail_.load(relaxed);
        tail_.store(tail + 1, relaxed);
        slot.value = std::move(value);
        slot.is_full.store(true, release);  // pairs with peek()
        return true;
    }

    // The consumer. The oldest value, which stays in the ring; null if the ring is empty.
    [[nodiscard]] T* peek() {
        const Alone<Consumer> alone(*this);
        Slot& slot = slots_[head_place_];
        return slot.is_full.load(acquire) ? &slot.value : nullptr;  // pairs with try_push()
    }

    // The consumer, after peek() gave a value: takes it out of the ring.
    void discard() {
        Slot& slot = slots_[head_place_];
        assert(slot.is_full.load(relaxed) && "no more is taken than was put");
        head_place_ = following(head_place_);
        head_.store(head_.load(relaxed) + 1, relaxed);
        slot.is_full.store(false, release);  // pairs with try_push()
    }

    // The consumer. False: the ring is empty.
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

    // Any thread, hints: the numbers of values that were ever pushed and popped.
    std::int64_t pushed() const { return tail_.load(relaxed); }
    std::int64_t popped() const { return head_.load(relaxed); }

    std::int64_t capacity() const { return capacity_.load(relaxed); }

    // While no thread is at either end. Calls `visit` with each value, the oldest first, until it returns a value other
    // than 0. Returns the last result.
    template <class Visit>
    int for_each(Visit visit) const {
        std::int64_t place = head_place_;
        for (std::int64_t i = 0; i < capacity() && slots_[place].is_full.load(relaxed); ++i, place = following(place)) {
            if (const int given = visit(slots_[place].value); given != 0) return given;
        }
        return 0;
    }

    // While no thread is at either end: ordered after both, and before both. All that waits stays.
    void grow(std::size_t capacity) {
        const Alone<Producer> producer(*this);
        const Alone<Consumer> consumer(*this);
        assert(static_cast<std::int64_t>(capacity) > this->capacity());
        std::unique_ptr<Slot[]> slots(new Slot[capacity]);
        const std::int64_t waiting = size();
        for (std::int64_t i = 0; i < waiting; ++i, head_place_ = following(head_place_)) {
            slots[i].value = std::move(slots_[head_place_].value);
            slots[i].is_full.store(true, relaxed);
        }
        slots_ = std::move(slots);
        head_place_ = 0, tail_place_ = waiting;
        capacity_.store(static_cast<std::int64_t>(capacity), relaxed);
    }

private:
    struct Slot {
        T value{};
        Atomic<bool> is_full{false};
    };

    std::int64_t following(std::int64_t place) const { return place + 1 == capacity() ? 0 : place + 1; }

    std::unique_ptr<Slot[]> slots_;
    Atomic<std::int64_t> capacity_;  // relaxed: grow() alone changes it
    alignas(apart) Atomic<std::int64_t> tail_{0};  // the producer; only counts
    std::int64_t tail_place_ = 0;
    alignas(apart) Atomic<std::int64_t> head_{0};  // the consumer
    std::int64_t head_place_ = 0;
};

}  // namespace callboard
