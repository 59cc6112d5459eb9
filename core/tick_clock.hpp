// A thread's monotonic clock, read from the processor's time stamp counter where that is reliable.
//
// A call of clock_gettime() takes 23 ns on the machine where this was written, and the counter 10. The kernel's own
// sum is the counter times a rate, and it may change the rate. So the rate is measured here, over 20 ms at least, and a
// sum is good for a millisecond: then the kernel's clock is read again. In that time the two diverge by some
// nanoseconds; by half a microsecond while NTP slews the clock as fast as it may. A reading of the kernel's clock that
// an interrupt prolonged does not become a start. If the two diverge more, as while a machine sleeps, the rate is
// measured again.
//
// The counter is reliable if the processor says that it always runs at one rate, and the kernel uses it, too.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "callboard/core/clock.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace callboard {

#if defined(__x86_64__)

// Whether this machine's time stamp counter is reliable.
inline bool ticks_are_even() {
    static const bool even = [] {
        unsigned a = 0, b = 0, c = 0, d = 0;
        if (!__get_cpuid(0x80000007, &a, &b, &c, &d) || !(d & 1u << 8)) return false;
        std::FILE* const file = std::fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "r");
        if (file == nullptr) return false;
        char name[8] = {};
        const std::size_t size = std::fread(name, 1, 4, file);
        std::fclose(file);
        return size == 4 && std::memcmp(name, "tsc\n", 4) == 0;
    }();
    return even;
}

// The processor's counter and the kernel's clock; tests have others.
struct ProcessorTicks {
    static bool are_even() { return ticks_are_even(); }
    static std::uint64_t ticks() { return __rdtsc(); }
    static std::int64_t ns() { return monotonic_ns(); }
};

// One thread at a time.
template <class Source>
class TickClockBy {
public:
    // In nanoseconds, as monotonic_ns(). It may go back by some nanoseconds.
    std::int64_t now() {
        const std::uint64_t since = Source::ticks() - ticks_;
        if (__builtin_expect(since < good_for_, 1)) return ns_ + static_cast<std::int64_t>(since * rate_ >> 32);
        return look();
    }

private:
    __attribute__((noinline)) std::int64_t look() {
        if (!Source::are_even()) return Source::ns();
        const std::uint64_t before = Source::ticks();
        const std::int64_t now = Source::ns();
        const std::uint64_t took = Source::ticks() - before;
        good_for_ = 0;
        if (took > longest_look) return now;
        const std::int64_t elapsed = now - first_ns_;
        if (first_ns_ == 0 || before <= first_ticks_ || has_jumped(before, now)) {
            rate_ = 0;
            first_ns_ = now;
            first_ticks_ = before;
            return now;
        }
        if (elapsed >= shortest_measure) {
            rate_ = static_cast<std::uint64_t>(static_cast<double>(elapsed) * 4294967296.0 /
                                               static_cast<double>(before - first_ticks_));
            if (elapsed >= longest_measure) first_ns_ = now, first_ticks_ = before;
        }
        if (rate_ == 0) return now;
        ns_ = now;
        ticks_ = before;
        good_for_ = std::min((std::uint64_t{good_ns} << 32) / rate_, most_ticks);
        return now;
    }

    // Whether the two have diverged since the last look, as while a machine sleeps: the counter may run on, and the
    // kernel's clock stands still.
    bool has_jumped(std::uint64_t ticks, std::int64_t now) const {
        if (rate_ == 0) return false;
        const double expected = static_cast<double>(ticks - ticks_) * static_cast<double>(rate_) / 4294967296.0;
        const auto elapsed = static_cast<double>(now - ns_);
        return std::abs(expected - elapsed) > 20'000 + elapsed / 100;
    }

    static constexpr std::uint64_t longest_look = 5000;      // ticks: 1 to 5 microseconds
    static constexpr std::uint64_t most_ticks = 10'000'000;  // however slow the counter seems: 2 to 10 milliseconds
    static constexpr std::int64_t shortest_measure = 20'000'000, longest_measure = 1'000'000'000, good_ns = 1'000'000;

    std::uint64_t ticks_{0}, good_for_{0};
    std::int64_t ns_{0};            // the time when the counter stood at `ticks_`
    std::uint64_t rate_{0};         // nanoseconds for 2^32 ticks; 0: not measured yet
    std::uint64_t first_ticks_{0};  // where the measuring of the rate began
    std::int64_t first_ns_{0};
};

using TickClock = TickClockBy<ProcessorTicks>;

#else

// One thread at a time.
class TickClock {
public:
    // In nanoseconds, as monotonic_ns().
    std::int64_t now() { return monotonic_ns(); }
};

#endif

}  // namespace callboard
