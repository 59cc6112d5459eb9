// What gates take of memory, and that they give it back.
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "gates.hpp"

// The allocation functions, replaced: they count the bytes in use.
static callboard::Atomic<std::int64_t> in_use{0};

static void* counted(void* memory) {
    if (memory == nullptr) throw std::bad_alloc();
    in_use.fetch_add(static_cast<std::int64_t>(malloc_usable_size(memory)), callboard::relaxed);
    return memory;
}
static void uncounted(void* memory) noexcept {
    if (memory != nullptr) in_use.fetch_sub(static_cast<std::int64_t>(malloc_usable_size(memory)), callboard::relaxed);
    std::free(memory);
}
void* operator new(std::size_t size) { return counted(std::malloc(size)); }
void* operator new(std::size_t size, std::align_val_t align) {
    const auto unit = static_cast<std::size_t>(align);
    return counted(std::aligned_alloc(unit, (size + unit - 1) / unit * unit));
}
void operator delete(void* memory) noexcept { uncounted(memory); }
void operator delete(void* memory, std::size_t) noexcept { uncounted(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { uncounted(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { uncounted(memory); }

TEST("memory does not grow with what has passed, and is given back, values that nobody has read or not") {
    with_each_gate([](auto kind) {
        const std::int64_t before = in_use.load(callboard::relaxed);
        {
            using Gate = typename decltype(kind)::Gate;
            Gate gate(4, 2, 64);
            std::int64_t most = 0;
            gate.end(3);
            for (std::int64_t i = 0; i < 40000; ++i) {
                CHECK(gate.try_add(0, i / 10, i));
                if (i % 7 == 0) CHECK(gate.try_add(2, i / 10, i));
                gate.come_to(1, i / 10);  // it brings nothing, and holds up no memory
                typename Gate::Entry entry;
                for (unsigned reader = 0; reader < 2 && i >= 40; ++reader) {
                    (void)gate.try_next(reader, entry);
                    if (i % 5 == 0) (void)gate.try_next(reader, entry);
                }
                most = std::max(most, in_use.load(callboard::relaxed) - before);
            }
            CHECK(most < 100'000);
        }
        CHECK_EQUAL(in_use.load(callboard::relaxed), before);
    });
}

CHECK_MAIN
