// Waits for notifications of an event count: spins for some microseconds, and then sleeps on an eventfd.
//
// Some waits in a row that do not end while they spin show that what comes takes longer. From then on only one wait in 64
// spins, until one of these is successful.
#pragma once

#include <poll.h>
#include <sys/eventfd.h>

#include <cstdint>

#include "callboard/core/threads/spinner.hpp"
#include "callboard/mailbox/shared/event_count.hpp"

namespace callboard {

// One thread at a time waits.
class EventWaiter {
public:
    EventWaiter(EventCount& events, int descriptor) : events_(events), descriptor_(descriptor) {}

    // Before a look for work.
    std::uint64_t look() const { return events_.look(); }

    // Waits until there is a notification since that look, or `also` is readable or closed, or `milliseconds` have
    // passed if they are not negative.
    void wait(std::uint64_t looked, int also, int milliseconds) {
        const bool spins = missed_ < tries || missed_ % retry == 0;
        if (spins && spin(looked)) {
            missed_ = 0;
            return;
        }
        ++missed_;
        if (!events_.try_sleep(looked)) return;
        sleep(also, milliseconds);
        events_.awake();
    }

    // True: there is a notification since that look. False: there is none, for some microseconds.
    bool spin(std::uint64_t looked) {
        return spinner_.wait_until([&] { return look() != looked; }, patience);
    }

    // Sleeps as wait() does, without a look at the events.
    void sleep(int also, int milliseconds) {
        pollfd polled[] = {{descriptor_, POLLIN, 0}, {also, POLLIN, 0}};
        poll(polled, 2, milliseconds);
        eventfd_t count;
        if (polled[0].revents & POLLIN) eventfd_read(descriptor_, &count);
    }

    // Any thread of any process that has the descriptor: ends a sleep, or the next one.
    static void rouse(int descriptor) { eventfd_write(descriptor, 1); }

private:
    static constexpr std::int64_t patience = 20'000;  // nanoseconds
    static constexpr std::uint32_t tries = 4;         // waits that spin without success, before no wait spins
    static constexpr std::uint32_t retry = 64;        // waits after which one spins again

    EventCount& events_;
    const int descriptor_;
    Spinner spinner_;
    std::uint32_t missed_{0};  // waits since one that a spin ended
};

}  // namespace callboard
