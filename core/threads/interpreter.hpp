// Waiting for the interpreter's lock.
#pragma once

#include <cstdint>

#include "callboard/core/atomics.hpp"
#include "callboard/core/clock.hpp"

namespace callboard {

// The time in which a thread releases the interpreter after it has sent or answered.
inline constexpr std::int64_t letting_go_ns = 200;

// Called without the interpreter, by a thread that is about to request it because another thread acted at
// the time `since`. That other thread still has the interpreter, and most often releases it at once: a
// future's result() follows an ask, and a worker's search for work an answer. A thread that requests it too
// early sleeps until the interpreter is free, which costs both threads some microseconds.
inline void await_interpreter(std::int64_t since) {
#ifndef Py_GIL_DISABLED
    while (monotonic_ns() - since < letting_go_ns) relax();
#else
    static_cast<void>(since);
#endif
}

}  // namespace callboard
