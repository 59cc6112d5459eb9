// A pause of a thread, which may hold the interpreter.
#pragma once

#include <Python.h>

#include <cstdint>
#include <ctime>

#include "callboard/core/clock.hpp"

namespace callboard {

// Any thread, with the interpreter or without. Returns the time when the pause was over, without a later wait for the
// interpreter. `holding`: no thread has the interpreter during the pause, and a waiting one gets it afterwards.
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
