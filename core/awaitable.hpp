// For objects that are awaited, and are no coroutines.
//
// The slots by which `await` steps them. Without am_send each await that ends makes a StopIteration for its outcome: more than most of them cost. Cython knows
// the slot for its own coroutines only.
#pragma once

#include <Python.h>

#include <utility>

namespace callboard {

// At a type's birth, before it has objects. The type has an __await__ that returns the object itself.
inline void set_steps(PyTypeObject* type, sendfunc send, iternextfunc next) {
    type->tp_as_async->am_send = send;
    type->tp_iternext = next;
    PyType_Modified(type);
}

// Whether an object was awaited, which is to happen once. If it was not, the object's end warns, as that of a coroutine
// does. A member, because a __dealloc__ would cost each object that was.
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

// An object of one kind that is over, for the next one of its kind: to make an object and to free it costs more than
// most awaits do by themselves. Objects that are not over never come here, so each is freed when nobody has it.
class Spare {
public:
    // A new reference to an object that is used again or new; null with an exception.
    PyObject* renew(PyTypeObject* kind) {
        if (PyObject* const object = std::exchange(object_, nullptr)) {
            if (Py_REFCNT(object) == 1) return object;
            Py_DECREF(object);  // somebody looks at it still
        }
        return kind->tp_new(kind, no_arguments(), nullptr);
    }

    // Keep `object`, which has let go of all that it held. Without the interpreter's lock, another thread may get it
    // while it is looked at here: then none is kept.
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
