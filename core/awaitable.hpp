// The slots by which `await` steps an object that is no coroutine.
//
// Without am_send each await that ends makes a StopIteration for its outcome: more than most of them cost. Cython knows
// the slot for its own coroutines only.
#pragma once

#include <Python.h>

namespace callboard {

// At a type's birth, before it has objects. The type has an __await__ that returns the object itself.
inline void set_steps(PyTypeObject* type, sendfunc send, iternextfunc next) {
    type->tp_as_async->am_send = send;
    type->tp_iternext = next;
    PyType_Modified(type);
}

}  // namespace callboard
