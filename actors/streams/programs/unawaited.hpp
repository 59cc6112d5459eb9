// Answers of a user's function that are never awaited: a coroutine, or an asynchronous generator, as of a lambda
// or a decorator around an `async` function.
//
// For most values that is a look at their type: those that can be awaited, or iterated over by `async for`, have
// methods for it.
#pragma once

#include <Python.h>

namespace callboard {

inline bool is_async(PyObject* value) {
    const PyAsyncMethods* const methods = Py_TYPE(value)->tp_as_async;
    return methods != nullptr && (methods->am_await != nullptr || methods->am_anext != nullptr);
}

// Coroutines and asynchronous generators, those of compiled functions among them, have these.
inline bool is_unawaited(PyObject* value) {
    return is_async(value) && (PyObject_HasAttrString(value, "cr_await") || PyObject_HasAttrString(value, "ag_await"));
}

// Raise TypeError, and close what would else be said to have never been awaited. Returns -1.
inline int refuse(PyObject* value, const char* who, const char* why) {
    const char* const kind = Py_TYPE(value)->tp_name;
    PyObject* const name = PyObject_GetAttrString(value, "__qualname__");
    if (name == nullptr) PyErr_Clear();
    if (PyObject_HasAttrString(value, "close")) {  // one that has not begun has nothing to raise
        PyObject* const closed = PyObject_CallMethod(value, "close", nullptr);
        if (closed == nullptr) PyErr_Clear();
        Py_XDECREF(closed);
    }
    if (name == nullptr) PyErr_Format(PyExc_TypeError, "%s returned an object of type %s, which %s", who, kind, why);
    else PyErr_Format(PyExc_TypeError, "%s returned the %s %S(), which %s", who, kind, name, why);
    Py_XDECREF(name);
    return -1;
}

// 0, or -1 with a TypeError.
inline int refuse_unawaited(PyObject* answer) {
    if (!is_async(answer) || !is_unawaited(answer)) return 0;
    return refuse(answer, "a function", "is never awaited: return a value");
}

// Whether an answer is true; -1 with an error. An object that can be awaited, or a generator, would be true
// whatever its result.
inline int is_true(PyObject* answer) {
    if (answer == Py_True) return 1;
    if (answer == Py_False || answer == Py_None) return 0;
    const PyTypeObject* const type = Py_TYPE(answer);
    const bool says = (type->tp_as_number != nullptr && type->tp_as_number->nb_bool != nullptr) ||
                      (type->tp_as_sequence != nullptr && type->tp_as_sequence->sq_length != nullptr) ||
                      (type->tp_as_mapping != nullptr && type->tp_as_mapping->mp_length != nullptr);
    if (refuse_unawaited(answer) < 0) return -1;
    if (!says && (is_async(answer) || PyGen_Check(answer)))
        return refuse(answer, "a function that decides", "is true whatever comes of it: it is to return true or false");
    return PyObject_IsTrue(answer);
}

}  // namespace callboard
