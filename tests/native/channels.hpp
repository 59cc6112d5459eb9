// Users of channels for tests and benchmarks: one that counts its wake-ups, and a thread that sleeps.
#pragma once

#include <cstdint>

#include "callboard/channels/kernel/waiting.hpp"
#include "callboard/core/clock.hpp"
#include "callboard/core/threads/parker.hpp"

namespace channels {

struct Counting : callboard::Wakeable {
    Counting() : Wakeable{count} {}
    int woken = 0;

private:
    static void count(Wakeable* self) { ++static_cast<Counting*>(self)->woken; }
};

class Sleeping : public callboard::Wakeable {
public:
    Sleeping() : Wakeable{unpark} {}

    // Until it is ready. False: the time was up before anybody woke this thread, and nobody does any more.
    bool wait_for(callboard::Waitable& place, std::int64_t nanoseconds = -1) {
        while (place.announce(this)) {
            if (parker_.park(nanoseconds)) continue;
            if (place.withdraw(this)) return false;
            parker_.park();  // the wake-up that is on its way
        }
        return true;
    }

    bool park(std::int64_t nanoseconds = -1) { return parker_.park(nanoseconds); }

private:
    static void unpark(Wakeable* self) { static_cast<Sleeping*>(self)->parker_.unpark(); }
    callboard::Parker parker_;
};

}  // namespace channels
