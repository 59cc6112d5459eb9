// The memory of a test's threads. Each has an arena, so every object lies at the same address in each run, whatever
// the other threads do. No address is used twice within an execution: one that comes back comes from the structure.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

#include "graph.hpp"

namespace model {

class Arena {
public:
    static constexpr std::size_t size = 1 << 18, line = 64;

    void clear() { used_ = 0, live_ = 0; }
    int live() const { return live_; }
    bool has(const void* memory) const { return memory >= bytes_ && memory < bytes_ + size; }

    void* take(std::size_t bytes) {
        const std::size_t wanted = line + (bytes + line - 1) / line * line;
        if (used_ + wanted > size) __builtin_trap();
        unsigned char* const block = bytes_ + used_;
        used_ += wanted;
        ++live_;
        *reinterpret_cast<bool*>(block) = false;  // given back?
        return block + line;
    }

    // False: it was given back before.
    bool give_back(void* memory) {
        bool* const freed = reinterpret_cast<bool*>(static_cast<unsigned char*>(memory) - line);
        if (*freed) return false;
        *freed = true;
        --live_;
        return true;
    }

private:
    alignas(4096) unsigned char bytes_[size];
    std::size_t used_ = 0;
    int live_ = 0;
};

inline Arena arenas[most_threads];
inline int allocating = -1;  // the thread of the test that runs; -1: the checker itself

inline void* allocate(std::size_t bytes) {
    if (allocating >= 0) return arenas[allocating].take(bytes);
    if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
    throw std::bad_alloc();
}

inline void give_back(void* memory) noexcept {
    for (Arena& arena : arenas) {
        if (!arena.has(memory)) continue;
        if (!arena.give_back(memory)) fail("memory is freed twice");
        return;
    }
    std::free(memory);
}

}  // namespace model
