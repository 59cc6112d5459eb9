// The reorder buffer of figure 4 in Prasaad, Ramalingam and Rajan 2018, section 3.2: a bounded ring, a
// try-flag, and a second look. It has the interface of ReorderBuffer, which is the one to use; this one is a
// peer for measurements.
//
// A worker puts its value into the ring, even while another is sending. Then, if no worker is sending, it
// sends all values that are next. It differs from the figure in three places. A slot says which serial number
// it holds, so it is never emptied, and its contents are never in doubt. The second look is a loop, not a
// recursion. And `next` is published for runs of values: adding workers read it all the time, and each change
// costs them a cache miss. But all workers write the flag for each value, and that costs several.
//
//     slots     | 8: - | 9: value | 10: value | 11: - | 4 (sent) | 5 (sent) | ...
//     next = 8    ^ whoever adds 8 sends 8, 9 and 10, and leaves next = 11
//
// Why values leave in order, each once (the paper's theorem 3.1). Only the flag's owner sends, and the flag
// has one owner at a time: it goes from clear to set by one exchange, and only its owner clears it. An owner
// sends, for each n in turn, the value of the slot whose stamp says n, and stops where there is none. The
// next owner goes on with the n where it stopped, which it acquires with the flag. So the values leave as 0,
// 1, 2 and so on, without a gap and once each, provided that a slot stamped n holds value n. It does when the
// owner reads it. Value t enters its slot only while next is in (t - capacity, t]. There `t - capacity` has
// been sent: its slot was read, and no worker reads it again. And t has not: no worker adds t twice. So only
// t's sender writes this slot until next is beyond t, which is published after the slot was read. The late
// publication of next makes the ring look fuller than it is, never emptier.
//
// Why no value is left behind. Suppose the sender of t finds the flag set and goes. Its exchange on the flag
// comes after its stamp, and before the owner's clearing exchange in the flag's order of changes. The
// clearing exchange reads what the exchanges before it wrote, and acquires what they released: the owner's
// second look, after clearing, sees the stamp. If t is next, the owner tries again, or another worker owns
// the flag by then, for which the same holds. Both exchanges are needed. With a plain load to see whether the
// flag is set, or a plain store to clear it, each side could look before its own write is out, and t would be
// left. (Store, then load, on two words: Dekker's pattern.) The exchanges make seq_cst unnecessary.
//
// Progress: send() is wait-free for a worker that finds the flag set. The owner sends the values that others
// add meanwhile, for as long as they do. A value that does not fit is refused at once: its worker does
// something else and comes back. The value with the serial number next() always fits, so one worker can
// always go on.
#pragma once

#include <utility>

#include "callboard/core/atomics.hpp"
#include "callboard/mailbox/ordered/ring.hpp"

namespace callboard {

// T is default-constructible and movable; a slot keeps the moved-from value. Serial numbers count from 0.
// A sink is called with each value in order, `sink(T&)`, by one thread at a time, each call ordered after
// the last. It must not throw.
template <class T>
class FlagReorderBuffer {
public:
    // Room for serial numbers from next() on, `capacity` of them, rounded up to a power of two.
    explicit FlagReorderBuffer(std::size_t capacity) : slots_(capacity) {}

    // Any thread, once for each serial number. False: there is no room yet, the value is still the
    // caller's; try again after other work. Either way, all that is next is sent, here or by another.
    template <class Sink>
    [[nodiscard]] bool send(std::int64_t serial, T&& value, Sink&& sink) {
        const bool added = try_add(serial, value);
        send_pending(sink);
        return added;
    }

    // Any thread. True stays true until the value is sent. While value n is being sent, there is room for
    // all up to n + capacity / 2.
    bool has_room(std::int64_t serial) const {
        return serial < next_.load(acquire) + slots_.capacity();  // pairs with send_run()
    }

    // Any thread. All values before this serial number have been sent, and perhaps half a ring more.
    std::int64_t next() const { return next_.load(acquire); }  // pairs with send_run()

    std::int64_t capacity() const { return slots_.capacity(); }

private:
    struct Slot {
        Atomic<std::int64_t> stamp{-1};  // the serial number of the value
        T value{};
    };

    bool try_add(std::int64_t serial, T& value) {
        if (!has_room(serial)) return false;
        Slot& slot = slots_[serial];
        slot.value = std::move(value);
        slot.stamp.store(serial, release);  // pairs with send_run()
        return true;
    }

    template <class Sink>
    void send_pending(Sink&& sink) {
        std::int64_t next;
        do {
            // Acquire: the last owner's next, and its sink's actions. Release: the stamp, to the owner that
            // clears.
            if (flag_.exchange(true, acq_rel)) return;
            next = send_run(sink);
            // Release: next, to the next owner. Acquire: the stamps of those who found the flag set.
            flag_.exchange(false, acq_rel);
        } while (slots_[next].stamp.load(relaxed) == next);
    }

    // The flag's owner. Sends the next values as far as there are any. Returns the serial number of the
    // first missing one.
    template <class Sink>
    std::int64_t send_run(Sink&& sink) {
        std::int64_t published = next_.load(relaxed), next = published;
        // Release pairs with has_room(): the slots have been read, and may be overwritten.
        const auto publish = [&] { next_.store(published = next, release); };
        for (;; ++next) {
            Slot& slot = slots_[next];
            if (slot.stamp.load(acquire) != next) break;  // pairs with try_add()
            if (2 * (next - published) >= slots_.capacity()) publish();
            sink(slot.value);
        }
        if (next != published) publish();
        return next;
    }

    const Ring<Slot> slots_;
    alignas(cache_line) Atomic<std::int64_t> next_{0};  // the flag's owner; all workers read
    alignas(cache_line) Atomic<bool> flag_{false};
};

}  // namespace callboard
