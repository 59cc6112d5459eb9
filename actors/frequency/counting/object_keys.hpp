// Keys of any sort that Python can hash.
#pragma once

#include <Python.h>

#include <cstdint>

#include "callboard/core/mix.hpp"

namespace callboard {

struct HashedObject {
    PyObject* object;
    std::uint64_t hash;
};

// The summary's owner keeps the objects alive. Comparing them may fail: then the search ends here, with the
// exception set, and its result means nothing.
struct ObjectKeys {
    using Kept = HashedObject;
    using Probe = PyObject*;

    static std::uint64_t hash(std::uint64_t seed, Py_hash_t python) {
        return mix(static_cast<std::uint64_t>(python) ^ seed);
    }
    static std::uint64_t hash_of(std::uint64_t, Kept kept) { return kept.hash; }
    static bool equal(Kept kept, Probe key) { return PyObject_RichCompareBool(kept.object, key, Py_EQ) != 0; }
    static Kept keep(Probe key, std::uint64_t hash) { return {key, hash}; }
    static void replace(Kept& kept, Probe key, std::uint64_t hash) { kept = {key, hash}; }
    static void drop(Kept) {}
};

}  // namespace callboard
