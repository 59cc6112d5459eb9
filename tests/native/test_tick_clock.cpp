// The tick clock, compared with the kernel's clock.
#include "callboard/core/tick_clock.hpp"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "check.hpp"

using callboard::monotonic_ns;
using callboard::TickClock;

TEST("it follows the kernel's clock, before and after its rate was measured, and after a sleep") {
    TickClock clock;
    constexpr std::int64_t tolerance = 10'000;  // a look at the kernel's clock that took longer is not used
    const std::int64_t begin = monotonic_ns();
    bool has_slept = false;
    for (std::int64_t after = begin; after - begin < 100'000'000;) {
        const std::int64_t before = monotonic_ns();
        const std::int64_t shown = clock.now();
        after = monotonic_ns();
        CHECK(shown >= before - tolerance);
        CHECK(shown <= after + tolerance);
        if (!has_slept && after - begin > 50'000'000) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            has_slept = true;
        }
    }
}

TEST("clocks of several threads agree") {
    std::int64_t shown[2];
    std::thread other([&] {
        TickClock clock;
        for (const std::int64_t begin = monotonic_ns(); monotonic_ns() - begin < 30'000'000;) clock.now();
        shown[0] = clock.now();
    });
    other.join();
    TickClock clock;
    shown[1] = clock.now();
    CHECK(shown[1] >= shown[0] - 10'000);
}

#if defined(__x86_64__)

namespace {

// A counter of 2 ticks a nanosecond, and a clock that stands still while the machine sleeps.
struct Machine {
    static inline std::uint64_t counter = 1'000'000;
    static inline std::int64_t clock = 1'000;
    static inline bool even = true;
    static inline int looks = 0;

    static bool are_even() { return even; }
    static std::uint64_t ticks() { return counter; }
    static std::int64_t ns() { return ++looks, clock; }
    static void work(std::int64_t ns) { counter += 2 * static_cast<std::uint64_t>(ns), clock += ns; }
    static void sleep(std::int64_t ns) { counter += 2 * static_cast<std::uint64_t>(ns); }
};

}  // namespace

TEST("after a machine has slept, at any time and for any time, the clock is right again within 100 ms of work") {
    for (const std::int64_t awake : {5'000'000ll, 30'000'000ll, 700'000'000ll, 3'000'000'000ll}) {
        for (const std::int64_t asleep : {1'000'000ll, 20'000'000'000ll, 3'600'000'000'000ll, 30'000'000'000'000ll}) {
            callboard::TickClockBy<Machine> clock;
            for (std::int64_t worked = 0; worked < awake; worked += 100'000) Machine::work(100'000), clock.now();
            Machine::sleep(asleep);
            std::int64_t most = 0;
            for (int i = 0; i < 100'000; ++i) {
                Machine::work(100'000);
                const std::int64_t error = std::abs(clock.now() - Machine::clock);
                most = std::max(most, i < 1'000 ? error / 1'000 : error);  // meanwhile it may stand still for 5 ms
            }
            CHECK(most <= 20'000);
        }
    }
}

TEST("the kernel's clock is read seldom while the counter can be relied on, and each time where it cannot") {
    callboard::TickClockBy<Machine> clock;
    for (int i = 0; i < 1'000; ++i) Machine::work(100'000), clock.now();
    const int before = Machine::looks;
    for (int i = 0; i < 1'000; ++i) Machine::work(100'000), clock.now();
    CHECK(Machine::looks - before <= 101);
    Machine::even = false;
    callboard::TickClockBy<Machine> other;
    const int uneven = Machine::looks;
    for (int i = 0; i < 1'000; ++i) Machine::work(100'000), CHECK_EQUAL(other.now(), Machine::clock);
    CHECK_EQUAL(Machine::looks - uneven, 1'000);
    Machine::even = true;
}

#endif

CHECK_MAIN
