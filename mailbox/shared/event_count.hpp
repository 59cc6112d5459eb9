// Lets a process sleep until another has something for it, without losing a wake-up.
//
// One word in shared memory counts the notifications and says whether the waiter sleeps. The waiter reads the word,
// looks for work, and says that it sleeps only if the word is still the same. So a notification either comes before
// the waiter's look at the word, and then its work is seen, or it finds the waiter asleep or prevents the sleep. A
// notification is one atomic addition, and costs a system call only while the waiter sleeps.
//
// The sleep itself is a poll() of a descriptor, an eventfd that both processes have. A futex would save the waiter a
// system call, but could not end with the other process: here the same poll() also has the descriptor that shows its
// end. A process may die between its work and its notification, so the end of the other process is a reason to look
// for work, too.
//
// A notifier may die, or be stopped for long, at any instruction, and must not keep the wake-up of others. So it wakes the
// waiter first, and clears the mark of sleep afterwards, only to save the others a system call. Until then, each of them
// wakes it, too. Each sleep changes the count, so the mark of a later sleep is never cleared by a notifier that comes late.
// Rejected: the one notifier that clears the mark wakes the waiter. If it were stopped in between, nobody would.
//
// The word is not trusted. Whatever the other process writes into it, the waiter can only sleep too long or wake for
// nothing. A waiter that has to go on in any case limits its sleep.
#pragma once

#include <cstdint>

#include "callboard/core/atomics.hpp"

namespace callboard {

// In shared memory, where zeros are a valid state. One process waits, and any number of processes notify it.
class EventCount {
public:
    // The waiter, before it looks for work.
    std::uint64_t look() const { return word_.load(acquire); }  // pairs with notify()

    // The waiter, after it found none. True: it sleeps until its descriptor is readable, and then calls awake(). False:
    // there was a notification since this look(), so it looks for work again.
    [[nodiscard]] bool try_sleep(std::uint64_t looked) {
        // relaxed: the word orders this against each notify(), and after the sleep there is another look().
        return word_.compare_exchange_strong(looked, (looked + one) | sleeping, relaxed);
    }

    // The waiter, after a sleep: no notification has to wake it.
    void awake() { word_.fetch_and(~sleeping, relaxed); }

    // Any process, after it made work visible. Calls wake(), which makes the waiter's descriptor readable, if it sleeps.
    // The caller may hesitate() before that: a function that waits, while what it is given is true, as long as it likes.
    // Another thread of the waiter's process may be about to look for work, and needs no sleeper.
    template <class Wake, class Hesitate>
    void notify(Wake&& wake, Hesitate&& hesitate) {
        if ((word_.fetch_add(one, release) & sleeping) == 0) return;  // pairs with look()
        hesitate([this] { return (word_.load(relaxed) & sleeping) != 0; });
        std::uint64_t found = word_.load(relaxed);
        if ((found & sleeping) == 0) return;  // another one woke it, or it woke by itself
        wake();
        word_.compare_exchange_strong(found, found & ~sleeping, relaxed);
    }
    template <class Wake>
    void notify(Wake&& wake) {
        notify(wake, [](auto&&) {});
    }

private:
    static constexpr std::uint64_t sleeping = 1, one = 2;

    Atomic<std::uint64_t> word_;
};

}  // namespace callboard
