// Spinning before a sleep, while another thread is about to do what this one waits for.
//
// A sleep and a wake-up cost the two threads 10 to 30 microseconds together. So spinning for about as
// long never costs more than twice the best choice. How to spin depends on where the other thread is:
//   - On another core, a loop of pauses sees it at once, and the answer is there within a microsecond.
//   - On this core, the other thread cannot run during that loop. This is frequent: Linux often puts a
//     woken thread on its waker's core. Then only sched_yield() helps, and it helps at once: two threads
//     that yield to each other take less time than two that wake each other.
// A thread cannot ask where the other one is, but the way that helped last time helps again. So a thread
// begins with pauses if they sufficed one of the last times, and otherwise tries them now and then. It
// goes on with yields.
//
// On a busy machine a yield gives the core to other work for milliseconds, and the scheduler lets a thread
// that yielded wait longer than one that slept. So a thread that lost its core for milliseconds does not yield
// for a second. If that happens again soon, it does not yield for two seconds, then four, up to a minute.
//
// Rejected: pauses alone. Two threads of one core wait 35 microseconds for each other, every time; a
// scheduler that would move one of them seldom finds both ready to run. Rejected: a yield after every few
// pauses, which costs half a microsecond more for an answer from another core. Rejected: to sleep at once,
// which costs a wake-up for each answer.
#pragma once

#include <sched.h>

#include <algorithm>
#include <cassert>
#include <cstdint>

#include "callboard/core/atomics.hpp"
#include "callboard/core/clock.hpp"
#include "callboard/core/one_at_a_time.hpp"

namespace callboard {

struct Processor {
    static std::int64_t now() { return monotonic_ns(); }
    static void pause() { relax(); }
    static void yield() { sched_yield(); }
};

// One for each thread, which alone uses it. Tests give another Core.
template <class Core>
class BasicSpinner : OneAtATime<Owner> {
public:
    static constexpr std::int64_t first_look = 2'000;          // nanoseconds, as are the others
    static constexpr std::int64_t away = 1'000'000;            // a yield of this length gave the core to other work
    static constexpr std::int64_t first_rest = 1'000'000'000;  // without yields
    static constexpr std::int64_t longest_rest = 64 * first_rest;
    static constexpr std::uint32_t tries = 4;             // without success, before pauses are given up
    static constexpr std::uint32_t retry = 16;            // waits after which unsuccessful pauses are tried again

    // True as soon as `holds()`; false when it is time to sleep, after about `patience` nanoseconds.
    template <class Holds>
    bool wait_until(Holds&& holds, std::int64_t patience) {
        if (holds()) return true;
        const Alone<Owner> alone(*this);
        const std::int64_t begin = Core::now();
        const bool yields = begin >= no_yield_before_;
        if (!yields || missed_ < tries || missed_ % retry == 0) {
            do {
                if (look(holds)) return missed_ = 0, true;
            } while (Core::now() - begin < first_look);
        }
        ++missed_;
        if (!yields) return false;
        for (std::int64_t before = Core::now(); before - begin < patience; before = Core::now()) {
            Core::yield();
            const std::int64_t after = Core::now();
            if (after - before >= away) {
                rest(after);
                return holds();
            }
            if (look(holds)) return true;
        }
        return false;
    }

private:
    template <class Holds>
    bool look(Holds&& holds) {
        for (int attempt = 0; attempt < 8; ++attempt) {
            if (holds()) return true;
            Core::pause();
        }
        return false;
    }

    void rest(std::int64_t now) {
        const bool again = now - no_yield_before_ < 4 * rest_;
        rest_ = again ? std::min(2 * rest_, longest_rest) : first_rest;
        no_yield_before_ = now + rest_;
        assert(rest_ >= first_rest && rest_ <= longest_rest);
    }

    std::uint32_t missed_{0};         // how often in a row pauses did not help, or were not tried
    std::int64_t no_yield_before_{0};
    std::int64_t rest_{0};            // how long it lasted the last time
};

using Spinner = BasicSpinner<Processor>;

}  // namespace callboard
