// The atomic word of one side of a channel: the user that waits for this side to become ready, if any.
//
// A side has one user at a time. To wait, the user announces a Wakeable at its own side. The other side makes this
// one ready, and then looks whether anybody waits. It takes the Wakeable out by an exchange, and wakes it.
//
// Why no wake-up is lost. The waiter announces itself, and then looks whether its side is ready. The other side makes
// it ready, and then looks for a waiter. orderings.hpp says why one of the two sees the other.
//
// Why "wake before block" does no harm. A waiter may be woken before it sleeps. Each kind of Wakeable keeps that
// wake-up, as core/threads/parker.hpp does, and so it does not sleep.
//
// Rules:
//   1. A word has one Wakeable or none. The thread that takes it out wakes it, once.
//   2. A Wakeable lives until it is taken back, or woken. wake() touches it last.
//   3. wake() does not use the side that calls it. The one that it wakes looks again: its side may have been emptied since.
//   4. The user may announce another Wakeable while one is announced. The one before is woken, so it looks again.
//
// Progress: wait-free.
#pragma once

#include <cassert>

#include "callboard/channels/kernel/orderings.hpp"

namespace callboard {

// A thing that can be woken: a task, a thread, or a member of a Selector.
struct Wakeable {
    void (*wake)(Wakeable*);
};

// A thing that one user waits for: a side of a channel, or a Selector. Its user alone calls these.
class Waitable {
public:
    virtual bool is_ready() = 0;
    // True: it will be woken. False: the side is ready, and nobody will wake it.
    [[nodiscard]] virtual bool announce(Wakeable* who) = 0;
    // True: it is taken back. False: it was taken out before, so it has been woken or will be in a moment.
    virtual bool withdraw(Wakeable* who) = 0;

protected:
    ~Waitable() = default;
};

template <class Ordering>
class WaitingWord {
public:
    // The other side, after it made this one ready. Also any thread: the user looks again then.
    void wake() {
        if (__builtin_expect(word_.look(), 0)) take_and_wake();
    }

    // This side's user. `is_ready` looks at the side. As Waitable::announce().
    template <class Ready>
    [[nodiscard]] bool announce(Wakeable* who, Ready&& is_ready) {
        assert(who != nullptr && who->wake != nullptr);
        if (Wakeable* const other = word_.announce(who); other != nullptr && other != who) other->wake(other);
        return !is_ready() || !withdraw(who);
    }

    bool withdraw(Wakeable* who) { return word_.withdraw(who); }

    // The other side, as the first half of wake(): the caller must wake what it gets. Null: nobody waits.
    [[nodiscard]] Wakeable* take() { return word_.look() ? word_.take() : nullptr; }

    // The other side. As with wake(), either it sees the waiter, or the waiter sees what it did before.
    bool has_waiter() { return word_.look(); }

private:
    __attribute__((noinline)) void take_and_wake() {
        if (Wakeable* const who = word_.take()) who->wake(who);
    }

    Ordering word_;
};

}  // namespace callboard
