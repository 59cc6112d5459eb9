// In place of core/memory/slab.hpp: lines from the checker's own memory. Slabs are shared by the threads of a process,
// and the checker's are not such; stress_slab.cpp has them.
#pragma once

#include <cstddef>
#include <new>

#include "callboard/core/atomics.hpp"

namespace callboard {

class Slab {
public:
    static constexpr std::size_t room = cache_line - sizeof(void*);
    static void* make_line() { return ::operator new(cache_line); }
    static void* make_reserved_line() noexcept { return nullptr; }  // memory does not end here
    static void free_line(void* memory) noexcept { ::operator delete(memory); }
};

}  // namespace callboard
