// Assertions in compiled modules: `assert holds(condition)`, for what a function relies on.
//
// Cython's `assert` alone would raise, and most functions of ours cannot: they are `noexcept`, or run without the
// interpreter. So here a failure ends the program, as that of an assertion of a header does. With NDEBUG neither
// the condition nor what Cython makes of the statement is compiled.
#pragma once

#include <cassert>

#ifdef NDEBUG
#define CYTHON_WITHOUT_ASSERTIONS
#endif

#define callboard_holds(condition) (assert(condition), true)
