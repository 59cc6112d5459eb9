// Calls of a user's function by a program, and the progress of its event time.
#pragma once

#include <Python.h>

#include <limits>

#include "callboard/core/atomics.hpp"
#include "callboard/streams/programs/unawaited.hpp"

namespace callboard {

// The progress of event time at one place, as a number. Any thread writes and reads it.
class EventProgress {
public:
    void note(double time) {
        if (time != time) return;
        double before = time_.load(relaxed);
        while (!(before >= time) && !time_.compare_exchange_weak(before, time, relaxed, relaxed)) {}
    }
    double get() const { return time_.load(relaxed); }  // not a number: nowhere

private:
    Atomic<double> time_{std::numeric_limits<double>::quiet_NaN()};
};

// PyObject_CallOneArg() for one function and many rows: its vectorcall is looked up once. A coroutine as the
// answer is an error.
inline PyObject* call_one(vectorcallfunc how, PyObject* function, PyObject* row) {
    PyObject* arguments[] = {nullptr, row};  // the first is for the callee to use
    PyObject* const answer = how == nullptr
        ? PyObject_CallOneArg(function, row)
        : how(function, arguments + 1, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
    if (answer == nullptr || refuse_unawaited(answer) == 0) return answer;
    Py_DECREF(answer);
    return nullptr;
}

}  // namespace callboard
