// Hashes of keys that are the same in all processes. Python's are not: those of texts begin with a random number in each
// process, and those of many objects are addresses.
#pragma once

#include <Python.h>

#include <cstddef>
#include <cstdint>

#include "callboard/core/mix.hpp"

namespace callboard {

// The hash of a key that consists of numbers, texts, bytes and None, also in tuples. Equal keys have equal hashes. Any
// other part is hashed by Python; then `is_foreign` becomes true, and the hash holds in this process only. 0 with an
// exception: a part has no hash.
inline std::uint64_t value_hash(PyObject* key, std::uint64_t seed, bool& is_foreign) {
    const auto hashed = Py_TYPE(key)->tp_hash;  // that of a derived class, if it has one
    if (hashed == PyUnicode_Type.tp_hash) {
#if PY_VERSION_HEX < 0x030c0000
        if (PyUnicode_READY(key) < 0) return 0;
#endif
        const auto size = static_cast<std::size_t>(PyUnicode_GET_LENGTH(key)) * PyUnicode_KIND(key);
        return hash_bytes(seed, static_cast<const char*>(PyUnicode_DATA(key)), size);
    }
    if (hashed == PyBytes_Type.tp_hash)
        return hash_bytes(seed, PyBytes_AS_STRING(key), static_cast<std::size_t>(PyBytes_GET_SIZE(key)));
    if (key == Py_None) return mix(seed);
    if (hashed == PyTuple_Type.tp_hash) {
        const auto size = PyTuple_GET_SIZE(key);
        auto found = seed ^ static_cast<std::uint64_t>(size);
        if (Py_EnterRecursiveCall(" while hashing a key")) return 0;
        for (Py_ssize_t at = 0; at < size; ++at) {
            found = mix(found + value_hash(PyTuple_GET_ITEM(key, at), seed, is_foreign));
            if (PyErr_Occurred()) break;
        }
        Py_LeaveRecursiveCall();
        return PyErr_Occurred() ? 0 : found;
    }
    if (hashed != PyLong_Type.tp_hash && hashed != PyFloat_Type.tp_hash) is_foreign = true;
    const auto found = PyObject_Hash(key);
    return found == -1 ? 0 : static_cast<std::uint64_t>(found);
}

}  // namespace callboard
