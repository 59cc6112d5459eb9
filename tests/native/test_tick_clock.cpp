// The clock by ticks, beside the kernel's.
#include "callboard/core/tick_clock.hpp"

#include <thread>

#include "check.hpp"

using callboard::monotonic_ns;
using callboard::TickClock;

TEST("it shows what the kernel's clock does, before and after its rate was measured, and after a sleep") {
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

CHECK_MAIN
