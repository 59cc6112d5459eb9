// A reorder buffer: values arrive from any worker in any order, and leave in the order of their serial
// numbers. No worker waits for another.
//
// Prasaad, Ramalingam and Rajan 2018, section 3.2: a bounded ring. A worker puts its value into it, even
// while another is sending. If no worker is, it sends all values that are next. In their figure 4, one flag
// says whether a worker is sending (FlagReorderBuffer is that figure). All workers write the flag for each
// value, and look a second time after clearing it lest a value be left. Here the flag is in the slots: a
// worker that stops sending leaves a mark in the slot of the missing value. Only the worker that brings that
// value finds the mark and goes on. Workers that bring other values write their own slots only.
//
//     slots     | 8: wanted | 9: here | 10: here | 11: - | 4 (sent) | 5 (sent) | ...
//                 ^ whoever brings 8 sends 8, 9 and 10, and leaves "wanted" in 11
//
// Why values leave in order, each once (the paper's theorem 3.1). There is one baton. Either one worker has
// it and is about to send n, or slot n says "wanted"; and all before n have been sent. So it is at the
// beginning, with n = 0. Slot n changes by read-modify-writes. The worker that brings n exchanges it for
// "here". If the baton's owner does not find "here", it compares and swaps in "wanted". If bringing came
// first, the swap fails, and the owner sends n. If the mark came first, the exchange returns it, and the
// worker that brought n has the baton. There is no third case. So n is sent by exactly one worker, and then
// it is n + 1's turn. The value that is sent as n is value n: "here" carries the serial number.
//
// Why a value is read before its slot is used again. Value t enters its slot only below the limit. The
// baton's owner raises the limit beyond t after it has sent t - capacity.
//
// Progress: to bring a value is wait-free. The baton's owner also sends the values that others bring while it
// sends. A value that does not fit is refused at once: its worker does something else and comes back. The
// value with the serial number next() always fits, so one worker can always go on.
#pragma once

#include <cassert>
#include <utility>

#include "callboard/core/atomics.hpp"
#include "callboard/mailbox/ordered/ring.hpp"

namespace callboard {

// T is default-constructible and movable; a slot keeps the moved-from value. Serial numbers count from 0.
// A sink is called with each value in order, `sink(T&)`, by one thread at a time, each call ordered after
// the last. It must not throw.
template <class T>
class ReorderBuffer {
public:
    // Room for `capacity` serial numbers, rounded up to a power of two.
    explicit ReorderBuffer(std::size_t capacity) : slots_(capacity), limit_(slots_.capacity()) {
        slots_[0].state.store(wanted(0), relaxed);
    }

    // Any thread, once for each serial number. False: there is no room yet, and the value is still the
    // caller's; try again after other work. Either way, all that is next is sent, here or by another.
    template <class Sink>
    [[nodiscard]] bool send(std::int64_t serial, T&& value, Sink&& sink) {
        assert(serial >= 0);
        if (!has_room(serial)) return false;
        Slot& slot = slots_[serial];
        slot.value = std::move(value);
        // Release pairs with the owner who finds the value, acquire with the one who left the mark.
        if (slot.state.exchange(here(serial), acq_rel) == wanted(serial)) send_run(serial, sink);
        return true;
    }

    // Any thread. True stays true until the value is sent. While value n is being sent, there is room for
    // all up to n + capacity / 2. (Room is announced twice a ring: each time costs every worker a cache
    // miss.)
    bool has_room(std::int64_t serial) const {
        return serial < limit_.load(acquire);  // pairs with send_run()
    }

    // Any thread. All values before this serial number have been sent.
    std::int64_t next() const { return next_.load(acquire); }  // pairs with send_run()

    std::int64_t capacity() const { return slots_.capacity(); }

private:
    struct Slot {
        Atomic<std::int64_t> state{-2};
        T value{};
    };

    static std::int64_t here(std::int64_t serial) { return 2 * serial; }
    static std::int64_t wanted(std::int64_t serial) { return 2 * serial + 1; }

    // The baton's owner, with value `next` here. Sends as far as there is any.
    template <class Sink>
    void send_run(std::int64_t next, Sink&& sink) {
        std::int64_t limit = limit_.load(relaxed);
        assert(next < limit && limit <= next + slots_.capacity() && "what has room is within a ring of what is next");
        for (;;) {
            assert(next_.load(relaxed) == next && "the baton's owner sends what is next");
            assert(slots_[next].state.load(relaxed) == here(next) && "what is sent is here");
            sink(slots_[next].value);
            // Release pairs with next(), and with has_room(): the slots have been read.
            next_.store(++next, release);
            const std::int64_t most = next + slots_.capacity();
            if (2 * (most - limit) >= slots_.capacity()) limit_.store(limit = most, release);
            Atomic<std::int64_t>& state = slots_[next].state;
            std::int64_t found = state.load(acquire);  // pairs with send()
            if (found == here(next)) continue;
            // Release: all that the next owner must see. Acquire as above, if the value has arrived.
            if (state.compare_exchange_strong(found, wanted(next), acq_rel, acquire)) return;
        }
    }

    const Ring<Slot> slots_;
    alignas(cache_line) Atomic<std::int64_t> limit_;    // the baton's owner, seldom; all workers read
    alignas(cache_line) Atomic<std::int64_t> next_{0};  // the baton's owner
};

}  // namespace callboard
