// Keys of any type that Python can hash.
#pragma once

#include <Python.h>

#include <cassert>
#include <cstdint>

#include "callboard/core/mix.hpp"

namespace callboard {

struct HashedObject {
    PyObject* object;
    std::uint64_t hash;
};

// The summary's owner keeps the objects alive. Comparing them may fail; then the search ends with the exception set,
// and its result has no meaning.
struct ObjectKeys {
    using Kept = HashedObject;
    using Probe = PyObject*;

    static std::uint64_t hash(std::uint64_t seed, Py_hash_t python) {
        return mix(static_cast<std::uint64_t>(python) ^ seed);
    }
    static std::uint64_t hash_of(std::uint64_t, Kept kept) { return kept.hash; }
    static bool equal(Kept kept, Probe key) {
        assert(kept.object != nullptr && key != nullptr);
        return PyObject_RichCompareBool(kept.object, key, Py_EQ) != 0;
    }
    static void replace(Kept& kept, Probe key, std::uint64_t hash) { kept = {key, hash}; }
    static void drop(Kept) {}
};

}  // namespace callboard
