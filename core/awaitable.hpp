// Awaitable objects that are not coroutines.
//
// `await` steps them by a type's slots. Without am_send the end of each await makes a StopIteration for its result,
// which costs more than most of the awaits. Cython fills the slot only for its own coroutines.
#pragma once

#include <Python.h>

#include <utility>

namespace callboard {

// Before the type has objects. Its __await__ returns the object itself.
inline void set_steps(PyTypeObject* type, sendfunc send, iternextfunc next) {
    type->tp_as_async->am_send = send;
    type->tp_iternext = next;
    PyType_Modified(type);
}

// Whether an object was awaited, which is allowed once. If it never was, its end warns, as with a coroutine. A member,
// because a __dealloc__ would make each object more expensive.
class Awaited {
public:
    // False: it was awaited before.
    bool try_begin() { return !std::exchange(is_begun_, true); }

    // The object is used again.
    void reset() { is_begun_ = false; }

    ~Awaited() {
        if (__builtin_expect(!is_begun_, 0)) warn();
    }

private:
    static void warn() {
        PyObject *kind, *error, *traceback;
        PyErr_Fetch(&kind, &error, &traceback);
        if (PyErr_WarnEx(PyExc_RuntimeWarning, "an operation of a channel was never awaited", 1) != 0) {
            PyErr_WriteUnraisable(nullptr);
        }
        PyErr_Restore(kind, error, traceback);
    }

    bool is_begun_ = false;
};

// A finished object, kept for reuse: to make and free an object costs more than most awaits.
class Spare {
public:
    // A new reference to a reused or new object; null with an exception.
    PyObject* renew(PyTypeObject* kind) {
        if (PyObject* const object = std::exchange(object_, nullptr)) {
            if (Py_REFCNT(object) == 1) return object;
            Py_DECREF(object);  // it is still in use
        }
        return kind->tp_new(kind, no_arguments(), nullptr);
    }

    // Keeps `object`, which has cleared its references. Without the interpreter's lock nothing is kept, because another
    // thread could take the object during the check.
    void keep([[maybe_unused]] PyObject* object) {
#ifndef Py_GIL_DISABLED
        if (object_ != nullptr) return;
        Py_INCREF(object);
        object_ = object;
#endif
    }

private:
    static PyObject* no_arguments() {
        static PyObject* const empty = PyTuple_New(0);
        return empty;
    }

    PyObject* object_ = nullptr;
};

}  // namespace callboard
