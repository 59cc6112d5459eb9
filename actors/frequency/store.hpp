// Rows of results.
#pragma once

#include <Python.h>

namespace callboard {

// A tuple of a class of named ones, to be filled in.
inline PyObject* new_row(PyObject* type) {
    auto* const row_type = reinterpret_cast<PyTypeObject*>(type);
    return row_type->tp_alloc(row_type, 3);
}

}  // namespace callboard
