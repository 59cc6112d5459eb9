// How threads that share the interpreter's lock wait for it.
#pragma once

#include <cstdint>

#include "callboard/core/atomics.hpp"
#include "callboard/core/clock.hpp"

namespace callboard {

// The time that a thread needs to release the interpreter after it has sent or answered.
inline constexpr std::int64_t letting_go_ns = 200;

// Called without the interpreter, by a thread that is about to ask for it because another thread, at
// the time `since`, did something for it to see. That other thread still has the interpreter, and
// most often releases it at once: a future's result() follows an ask, and a worker's search for work
// an answer. A thread that asks too early sleeps until the interpreter is free, which costs both
// threads some microseconds.
inline void await_interpreter(std::int64_t since) {
#ifndef Py_GIL_DISABLED
    while (monotonic_ns() - since < letting_go_ns) relax();
#else
    static_cast<void>(since);
#endif
}

}  // namespace callboard
