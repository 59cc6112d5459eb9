// A flag on which a thread that waits for a future spins, before it sleeps.
#pragma once

#include "callboard/core/atomics.hpp"
#include "callboard/core/clock.hpp"
#include "callboard/core/threads/interpreter.hpp"
#include "callboard/core/threads/spinner.hpp"

namespace callboard {

class Flag {
public:
    bool is_set() const { return set_.load(acquire); }

    void set() { set_.store(true, release); }

    // True: it was set before it was time to sleep. Patient enough for a worker that has to be
    // woken on another core first, which takes 20 to 30 microseconds on virtual ones.
    bool spin(Spinner& spinner) {
        if (!spinner.wait_until([this] { return is_set(); }, 40'000)) return false;
        await_interpreter(monotonic_ns());
        return true;
    }

private:
    Atomic<bool> set_{false};
};

}  // namespace callboard
