// A text's bytes, where they can be read in place.
#pragma once

#include <Python.h>

#include <cstdint>

#include "callboard/frequency/counting/keys.hpp"

namespace callboard {

// The fast path of append_key() for most texts.
inline int read_ascii(PyObject* key, ByteRun* run) {
    if (!PyUnicode_CheckExact(key) || !PyUnicode_IS_COMPACT_ASCII(key)) return 0;
    const Py_ssize_t size = PyUnicode_GET_LENGTH(key);
    if (size > 0xffffffff) return 0;
    *run = {reinterpret_cast<const char*>(reinterpret_cast<PyASCIIObject*>(key) + 1),
            static_cast<std::uint32_t>(size), text_key};
    return 1;
}

}  // namespace callboard
