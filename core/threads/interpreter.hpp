// What threads that share the interpreter's lock do for each other.
#pragma once

#include <cstdint>

#include "callboard/core/atomics.hpp"
#include "callboard/core/clock.hpp"

namespace callboard {

// The time that a thread needs to let the interpreter go after it has sent, or answered.
inline constexpr std::int64_t letting_go_ns = 200;

// To be called without the interpreter, by a thread that is about to ask for it since another thread,
// at the time `since`, did something for it to see. The other one has the interpreter still, most
// often to let it go at once: a future's result() follows an ask, and a worker's search for work an
// answer. To ask for it meanwhile is to sleep until it is free, and costs both some microseconds.
inline void await_interpreter(std::int64_t since) {
#ifndef Py_GIL_DISABLED
    while (monotonic_ns() - since < letting_go_ns) relax();
#else
    static_cast<void>(since);
#endif
}

}  // namespace callboard
