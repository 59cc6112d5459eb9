// Tools for copies of a function: numbers of threads, and whether a copy still acts as the function does.
#pragma once

#include <Python.h>

#include <cstdint>

namespace callboard {

// Unlike thread identifiers, these are not used again. They begin with 1.
inline std::uint64_t thread_number() { return PyThreadState_GetID(PyThreadState_Get()); }

inline bool is_nested_function(PyObject* what) {
    if (!PyFunction_Check(what)) return false;
    return reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(what))->co_flags & CO_NESTED;
}

// Whether a copy still does what the function does: code and defaults may be replaced at any time.
inline bool is_like(PyObject* copy, PyObject* function) {
    return PyFunction_GET_CODE(copy) == PyFunction_GET_CODE(function) &&
        PyFunction_GET_DEFAULTS(copy) == PyFunction_GET_DEFAULTS(function) &&
        PyFunction_GET_KW_DEFAULTS(copy) == PyFunction_GET_KW_DEFAULTS(function);
}

// Whether a cell of a function's closure has a value, and no other reference.
inline bool has_alone(PyObject* function, Py_ssize_t number) {
    PyObject* const closure = PyFunction_GET_CLOSURE(function);
    PyObject* const cell = PyTuple_GET_ITEM(closure, number);
    return Py_REFCNT(closure) == 1 && Py_REFCNT(cell) == 1 && PyCell_GET(cell) != nullptr;
}

}  // namespace callboard
