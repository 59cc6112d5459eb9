// Epoch-based reclamation: memory that others may still be reading is used again when all who were inside have
// left.
//
// After Fraser 2004, "Practical lock-freedom", section 5.2.3. Members announce the epoch in which they enter. The
// epoch advances when all who are inside have announced the current one. A member unlinks a thing, so that nobody
// who enters later finds it, and retires it with the epoch that the member has announced. The thing may be used
// again when the epoch is three beyond that. Two beyond the current epoch would do, but the member knows only that
// the current one is at most one beyond its own.
//
// Why three. Let a member unlink a thing while it is inside with `mine`.
//   1. The epoch is at most mine + 1 until it leaves: to advance from e, all inside must have announced e. For
//      this, a thread that looks for members must see each member that is inside. enter() stores its announcement
//      and then finds the epoch unchanged. try_advance() finds the epoch and then loads the announcements. All four
//      are seq_cst. So if the epoch that enter() found came before the one that try_advance() found, the
//      announcement was seen.
//   2. So the thread that moved the epoch to mine + 2 has acquired the unlinker's leaving, or its next
//      announcement. It has released that with the epoch, and enter() acquires the epoch. Hence a member that
//      entered in mine + 2 or later does not find the thing, and all who may hold it are inside with mine + 1 or
//      less.
//   3. By 1 the epoch is at most mine + 2 while any of them is inside. At mine + 3 all of them have left, and
//      has_passed() has acquired that.
//
// Visitors are temporary members, on places that they share.
//
// Progress: enter() is lock-free: it tries again when the epoch has advanced. leave() is wait-free. A member that
// stays inside, because it was preempted, say, holds up the epoch: retired memory is not used again meanwhile. It
// holds up nothing else. A member that retires things must bound how many of them wait: it leaves, and yields until
// the epoch advances.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <thread>

#include "callboard/core/atomics.hpp"

namespace callboard {

class Epochs {
public:
    Epochs(unsigned members, unsigned visitors)
        : members_(members), places_(members + visitors), announced_(new Announced[places_]) {}

    // Member `index`, which is outside. Returns the epoch that it announced.
    std::uint64_t enter(unsigned index) {
        assert(index < places_ && !is_inside(index) && "a member enters once");
        std::uint64_t epoch = epoch_.load(relaxed);
        for (;;) {
            announced_[index].epoch.store(epoch, seq_cst);  // see 1.
            const std::uint64_t now = epoch_.load(seq_cst);  // acquire pairs with try_advance()
            if (now == epoch) return epoch;
            assert(now > epoch && "the epoch only grows");
            epoch = now;
        }
    }

    // Release pairs with try_advance(): the member's actions inside come before the next epoch.
    void leave(unsigned index) { announced_[index].epoch.store(outside, release); }

    // Any thread. Returns its place among the members, for leave_as_visitor(). While there is none free, it waits.
    unsigned enter_as_visitor() {
        for (;; std::this_thread::yield()) {
            for (unsigned place = members_; place < places_; ++place) {
                Atomic<bool>& taken = announced_[place].taken;
                // Acquire pairs with the last visitor's release.
                if (taken.load(relaxed) || taken.exchange(true, acquire)) continue;
                enter(place);
                return place;
            }
        }
    }
    void leave_as_visitor(unsigned place) {
        assert(place >= members_ && place < places_ && is_inside(place));
        leave(place);
        announced_[place].taken.store(false, release);  // pairs with the next visitor
    }

    // The member's thread. For assertions: what others may retire is read from inside only.
    bool is_inside(unsigned index) const { return announced_[index].epoch.load(relaxed) != outside; }
    // Any thread, inside or not. Moves the epoch on if all who are inside have announced it.
    bool try_advance() {
        std::uint64_t epoch = epoch_.load(seq_cst);  // see 1.
        for (unsigned place = 0; place < places_; ++place) {
            // Acquire pairs with leave() and enter().
            const std::uint64_t announced = announced_[place].epoch.load(seq_cst);
            if (announced != outside && announced != epoch) return false;
        }
        // Release pairs with enter() and has_passed(); a slower thread's exchange fails and orders
        // nothing.
        return epoch_.compare_exchange_strong(epoch, epoch + 1, seq_cst, relaxed);
    }

    // No thread holds a thing that a member with this epoch retired. Acquire pairs with try_advance().
    bool has_passed(std::uint64_t announced) const { return epoch_.load(acquire) >= announced + 3; }

private:
    static constexpr std::uint64_t outside = 0;
    struct alignas(cache_line) Announced {
        Atomic<std::uint64_t> epoch{outside};
        Atomic<bool> taken{false};
    };

    const unsigned members_, places_;
    const std::unique_ptr<Announced[]> announced_;
    alignas(cache_line) Atomic<std::uint64_t> epoch_{1};
};

}  // namespace callboard
