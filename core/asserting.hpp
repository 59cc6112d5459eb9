// Assertions in compiled modules: `assert holds(condition)`, for the conditions that a function relies on.
//
// Cython's `assert` alone would raise, and most of our functions cannot: they are `noexcept`, or run without the
// interpreter. So here a failure ends the program, as in a header. With NDEBUG neither the condition nor Cython's code
// for the statement is compiled.
#pragma once

#include <cassert>

#ifdef NDEBUG
#define CYTHON_WITHOUT_ASSERTIONS
#endif

#define callboard_holds(condition) (assert(condition), true)
