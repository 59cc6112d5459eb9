// The allocation functions, replaced: they count slabs, and can act as if memory were out. For one source of a
// program.
#pragma once

#include <cstdlib>
#include <new>

#include "callboard/core/memory/slab.hpp"

static callboard::Atomic<long> made{0}, freed{0};
static callboard::Atomic<bool> is_memory_out{false};

void* operator new(std::size_t size) {
    made.fetch_add(size == callboard::Slab::size, callboard::relaxed);
    if (!is_memory_out.load(callboard::relaxed))
        if (void* memory = std::malloc(size)) return memory;
    throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t size) noexcept {
    freed.fetch_add(size == callboard::Slab::size, callboard::relaxed);
    std::free(memory);
}
