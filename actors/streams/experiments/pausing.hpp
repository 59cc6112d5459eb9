// A pause of a thread that may have the interpreter.
#pragma once

#include <Python.h>

#include <cstdint>
#include <ctime>

#include "callboard/core/clock.hpp"

namespace callboard {

// Any thread, with the interpreter or without. Returns when the pause was over: the wait for the interpreter, if it was
// let go, is none of it. `holding`: nobody else has it meanwhile, and then who waits for it.
inline std::int64_t pause(std::int64_t nanoseconds, bool holding) {
    const auto sleep = [nanoseconds] {
        const timespec time{static_cast<std::time_t>(nanoseconds / 1'000'000'000),
                            static_cast<long>(nanoseconds % 1'000'000'000)};
        nanosleep(&time, nullptr);
        return monotonic_ns();
    };
    const bool has = PyGILState_Check() != 0;
    if (!has && !holding) return sleep();
    if (has) {
        std::int64_t end = holding ? sleep() : 0;
        PyThreadState* const thread = PyEval_SaveThread();
        if (!holding) end = sleep();
        PyEval_RestoreThread(thread);
        return end;
    }
    const PyGILState_STATE before = PyGILState_Ensure();
    const auto end = sleep();
    PyGILState_Release(before);
    return end;
}

}  // namespace callboard
