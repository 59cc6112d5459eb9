// The monotonic clock: the one that Python's time.monotonic() reads.
#pragma once

#include <cstdint>
#include <ctime>

#ifdef __linux__
#include <sys/prctl.h>
#endif

namespace callboard {

// In nanoseconds; its zero is arbitrary.
inline std::int64_t monotonic_ns() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * std::int64_t{1000000000} + time.tv_nsec;
}

// The same clock as of its last tick, 1 to 10 milliseconds ago: a quarter of the time to read.
inline std::int64_t coarse_ns() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
    return time.tv_sec * std::int64_t{1000000000} + time.tv_nsec;
}

// Has the system end this thread's timed waits within a microsecond of their time, instead of 50 to save power.
inline void wake_on_time() noexcept {
#ifdef __linux__
    prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
#endif
}

}  // namespace callboard
