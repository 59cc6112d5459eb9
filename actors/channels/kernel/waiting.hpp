// The word of one side of a channel: who waits for this side to become ready, if anybody does.
//
// A side has one user at a time. To wait, the user announces a Wakeable at its own side. The other side makes this
// one ready, and then looks whether anybody waits. It takes the Wakeable out by an exchange, and wakes it.
//
// Why no wake-up is lost. The waiter announces itself, and then looks whether its side is ready. The other side makes
// it ready, and then looks for a waiter (Dekker). So it is enough that one of the two sees the other:
//   - Locked: both use the channel under one lock, such as the interpreter's. One comes after the other.
//   - Concurrent: the announcement and the look for a waiter are read-modify-writes of the same word, so one comes
//     after the other in the word's modification order. If the announcement comes first, the look sees it.
//     Otherwise the announcement reads from the look, or from a read-modify-write after it, and acquires what was
//     published before the look. So the waiter's own look finds its side ready. (seq_cst on the word and on all that
//     makes a side ready would do as well, at the same price on x86-64. It would spread over the ring's indices.)
//
// Why "wake before block" does no harm. A waiter may be woken before it sleeps. Each kind of Wakeable keeps that
// wake-up, as core/threads/parker.hpp does, and so it does not sleep.
//
// Rules:
//   1. A word is left as null, or with a Wakeable that nobody has taken. The thread that takes it out wakes it, once.
//   2. A Wakeable lives until it is taken back, or woken. wake() touches it last.
//   3. wake() does not use the side that calls it. What it wakes looks again: its side may have been emptied since.
//   4. The user may announce another Wakeable while one is announced. The one before is woken, so it looks again.
//
// Progress: wait-free.
#pragma once

#include <cassert>

#include "callboard/core/atomics.hpp"

namespace callboard {

// What can be woken: a task, a thread, or a member of a Selector.
struct Wakeable {
    void (*wake)(Wakeable*);
};

// What one user waits for: a side of a channel, or a Selector. Its user alone calls these.
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

// For channels that are only used under one lock.
struct Locked {
    using Word = Atomic<Wakeable*>;

    // Somebody may wait.
    static bool look(Word& word) { return word.load(relaxed) != nullptr; }
    static Wakeable* exchange(Word& word, Wakeable* who) {
        Wakeable* const before = word.load(relaxed);
        word.store(who, relaxed);
        return before;
    }
    static bool withdraw(Word& word, Wakeable* who) {
        if (word.load(relaxed) != who) return false;
        word.store(nullptr, relaxed);
        return true;
    }
};

// For channels whose two sides are used by threads that run at once.
struct Concurrent {
    using Word = Atomic<Wakeable*>;

    // It writes null over null. Release pairs with exchange() by the waiter: see above. Where it finds a waiter, the
    // exchange that takes it out orders all.
    static bool look(Word& word) {
        Wakeable* nobody = nullptr;
        return !word.compare_exchange_strong(nobody, nullptr, release, relaxed);
    }
    // By the waiter: acquire pairs with look(), release with the taker's exchange. By the taker: acquire pairs with
    // the waiter's, so it sees the whole Wakeable; release with withdraw().
    static Wakeable* exchange(Word& word, Wakeable* who) { return word.exchange(who, acq_rel); }
    // Acquire pairs with the taker's exchange: a waiter that comes too late sees why it was taken out.
    static bool withdraw(Word& word, Wakeable* who) {
        return word.compare_exchange_strong(who, nullptr, relaxed, acquire);
    }
};

template <class Ordering>
class WaitingWord {
public:
    // The other side, after it made this one ready. Also any thread: the user looks again then.
    void wake() {
        if (__builtin_expect(Ordering::look(word_), 0)) take_and_wake();
    }

    // This side's user. `is_ready` looks at the side. As Waitable::announce().
    template <class Ready>
    [[nodiscard]] bool announce(Wakeable* who, Ready&& is_ready) {
        assert(who != nullptr && who->wake != nullptr);
        if (Wakeable* const other = Ordering::exchange(word_, who); other != nullptr && other != who) other->wake(other);
        return !is_ready() || !withdraw(who);
    }

    bool withdraw(Wakeable* who) { return Ordering::withdraw(word_, who); }

    // The other side, as the first half of wake(): the caller must wake what it gets. Null: nobody waits.
    [[nodiscard]] Wakeable* take() { return Ordering::look(word_) ? Ordering::exchange(word_, nullptr) : nullptr; }

    // The other side. As with wake(), either it sees the waiter, or the waiter sees what it did before.
    bool has_waiter() { return Ordering::look(word_); }

private:
    __attribute__((noinline)) void take_and_wake() {
        if (Wakeable* const who = Ordering::exchange(word_, nullptr)) who->wake(who);
    }

    typename Ordering::Word word_{nullptr};
};

}  // namespace callboard
