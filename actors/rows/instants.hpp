// The checks that instant_of() makes on each value.
#pragma once

#include <Python.h>

namespace callboard {

// Whether a value compares and hashes as its base type (tuple or list) does.
inline bool is_as(PyObject* value, PyTypeObject* type) {
    return Py_TYPE(value)->tp_richcompare == type->tp_richcompare && Py_TYPE(value)->tp_hash == type->tp_hash;
}

inline bool is_plain(PyObject* value) {
    return PyLong_CheckExact(value) || PyFloat_CheckExact(value) || PyUnicode_CheckExact(value);
}

inline bool is_as_tuple(PyObject* value) { return PyTuple_Check(value) && is_as(value, &PyTuple_Type); }

inline bool is_as_list(PyObject* value) { return PyList_Check(value) && is_as(value, &PyList_Type); }

inline int go_deeper() { return Py_EnterRecursiveCall(" while looking for datetimes") ? -1 : 0; }

}  // namespace callboard
