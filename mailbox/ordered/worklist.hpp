// A worklist: a bounded queue, many producers, many consumers, first in, first out. Workers share one
// when any of them may do the work.
//
// Vyukov's bounded queue: a ring whose slots each carry a sequence number. It says which position may use
// the slot, so a position is claimed by one compare-and-swap on a counter that only grows: no ABA, and no
// allocation. The position is also the value's serial number, counted from 0. A reorder buffer orders the
// results by it (Prasaad et al. 2018, section 3).
//
// The sequence of the slot of serial number s: 2s, free for s; 2s + 1, holds s; then 2(s + capacity), free for
// the next that comes here. A capacity of one works, too.
//
// Why it is right. Tail and head only grow, by one, by compare-and-swap: each serial number is claimed by
// one producer and by one consumer. The producer of s claims it after it saw the sequence 2s. Only the
// consumer of s - capacity stores that sequence, after it has moved its value out. The consumer of s claims it
// after it saw 2s + 1. Only the producer of s stores that sequence, after it has put the value in. Between
// claim and store no other thread touches the slot, because all others wait for a later sequence.
//
// Progress: lock-free among producers, and among consumers. A producer that is stopped between its claim
// and its store holds back the values behind its own: pop() returns `none` until then, and no thread waits in
// place. So `none` means "nothing can be taken now", which is weaker than "empty": later values may be
// complete. Likewise push() returns `none` while the consumer of the slot is stopped in the middle. Where a
// queue must be strictly linearizable, `none` included, take a lock.
#pragma once

#include <cassert>
#include <utility>

#include "callboard/core/atomics.hpp"
#include "callboard/mailbox/ordered/ring.hpp"

namespace callboard {

// T is default-constructible and movable; a slot keeps the moved-from value.
template <class T>
class Worklist {
public:
    static constexpr std::int64_t none = -1;

    // Room for `capacity` values, rounded up to a power of two.
    explicit Worklist(std::size_t capacity) : slots_(capacity) {
        for (std::int64_t serial = 0; serial < slots_.capacity(); ++serial)
            slots_[serial].sequence.store(2 * serial, relaxed);
    }

    // Any thread. The value's serial number, or `none` if there is no room.
    [[nodiscard]] std::int64_t push(T value) {
        std::int64_t serial = tail_.load(relaxed);
        for (;;) {
            Slot& slot = slots_[serial];
            // Acquire pairs with the release in pop(): the old value has been moved out.
            const std::int64_t ahead = slot.sequence.load(acquire) - 2 * serial;
            if (ahead < 0) return none;
            if (ahead > 0) {
                serial = tail_.load(relaxed);
            } else if (tail_.compare_exchange_weak(serial, serial + 1, seq_cst, relaxed)) {
                // The counter says nothing about the slot, its sequence does. seq_cst with size().
                assert(slot.sequence.load(relaxed) == 2 * serial && "the slot is this producer's");
                slot.value = std::move(value);
                slot.sequence.store(2 * serial + 1, release);  // pairs with pop()
                return serial;
            }
        }
    }

    // Any thread. The oldest value and its serial number, or `none`.
    [[nodiscard]] std::int64_t pop(T& value) {
        std::int64_t serial = head_.load(relaxed);
        for (;;) {
            Slot& slot = slots_[serial];
            // Acquire pairs with the release in push(): the value is there.
            const std::int64_t ahead = slot.sequence.load(acquire) - (2 * serial + 1);
            if (ahead < 0) return none;
            if (ahead > 0) {
                serial = head_.load(relaxed);
            } else if (head_.compare_exchange_weak(serial, serial + 1, relaxed, relaxed)) {
                assert(slot.sequence.load(relaxed) == 2 * serial + 1 && "the slot is this consumer's");
                value = std::move(slot.value);
                slot.sequence.store(2 * (serial + slots_.capacity()), release);  // pairs with push()
                return serial;
            }
        }
    }

    // Any thread. A hint, and a guarantee for a thread that goes to sleep. Say that it announces its
    // sleep by a seq_cst write and then finds 0 here. A producer that pushes and then reads the
    // announcement with seq_cst sees it. (Each thread writes one word and then reads the other's;
    // with less than seq_cst, both could miss.) A value that is being pushed is counted, though it
    // cannot be taken yet.
    std::int64_t size() const {
        const std::int64_t tail = tail_.load(seq_cst);
        const std::int64_t size = tail - head_.load(relaxed);
        return size < 0 ? 0 : size;  // the two loads are not one moment
    }

    std::int64_t capacity() const { return slots_.capacity(); }

private:
    struct Slot {
        Atomic<std::int64_t> sequence;
        T value{};
    };

    const Ring<Slot> slots_;
    alignas(cache_line) Atomic<std::int64_t> tail_{0};  // producers
    alignas(cache_line) Atomic<std::int64_t> head_{0};  // consumers
};

}  // namespace callboard
