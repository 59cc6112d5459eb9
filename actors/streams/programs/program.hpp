// How a program calls a function of the user's.
#pragma once

#include <Python.h>

#include "callboard/streams/programs/unawaited.hpp"

namespace callboard {

// PyObject_CallOneArg() for one function and many rows: how it is called is found out once. An answer that
// nobody would await is an error.
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
