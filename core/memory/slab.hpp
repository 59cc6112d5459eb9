// Slabs: memory for small objects that different threads write, each alone on its cache line.
//
// A thread makes lines one after another from its own slab, and any thread frees one. Behind its
// contents, a line names its slab. A slab counts its lines that are in use or not made yet. Rules:
//   1. A slab is made with all its lines counted, and for its maker alone. Only the maker's thread makes
//      lines of it, and these stay counted: making one writes nothing that another thread reads.
//   2. The thread that frees a line has exclusive access to it, as with any memory: all other uses of the
//      line happened before.
//   3. Freeing a line subtracts 1 from the count. The thread does not touch the line afterwards. A thread
//      that ends subtracts the lines that it did not make.
//   4. The thread that subtracts the last 1 frees the slab: all lines are freed, and no more will be made.
// Memory orders. The subtraction of rule 3 releases: all uses of the line come before it. It acquires,
// too, for rule 4: all subtractions are read-modify-writes, so the last comes after each of them, and no
// use of a line comes after the slab was freed.
//
// Why a line stores its slab, instead of finding it from its address. A slab that is found by masking an address has to
// lie on a multiple of its size. For such a slab glibc (2.36) looks for twice the room. So it does not
// reuse the room of a freed slab, and a program with bursts grows with each of them. A slab from here is
// an ordinary piece of memory, 2 KiB with malloc's own word, and fits where another slab was.
//
// Why 2 KiB. A slab stays for as long as one line of it is used, so it should be small. Its first line
// holds the count, so it should be large. Measured in docs/design/free-lists.md.
//
// A forked process keeps the slabs of its parent's threads, though it does not have these threads.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <new>

#include "callboard/core/atomics.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace callboard {

class Slab {
    struct Line;

public:
    static constexpr std::size_t size = 2048 - sizeof(std::size_t);
    static constexpr std::size_t room = cache_line - sizeof(Slab*);  // for a line's contents

    // Any thread, of any extension module: each has its own slabs. Throws std::bad_alloc.
    static void* make_line() {
        UnusedLines& unused = unused_;
        if (unused.count == 0) renew(unused);
        assert(unused.count != 0 && reinterpret_cast<std::uintptr_t>(unused.next) % cache_line == 0);
        Line* const line = unused.next++;
        --unused.count;
        line->slab = unused.slab;
        if (unused.ended) give_back(unused);  // after the thread's end no other thread would
        return line;
    }

    // Any thread: a line for when there is no more memory, from a reserve of the calling module, which is not refilled.
    // Null: the reserve is used up.
    static void* make_reserved_line() noexcept;

    // Any thread.
    static void free_line(void* memory) noexcept {
        if (memory == nullptr) return;
        Line* const line = static_cast<Line*>(memory);
        Slab* const slab = line->slab;
        assert(slab != nullptr);
#if defined(__SANITIZE_ADDRESS__)
        __asan_poison_memory_region(line, sizeof(Line));  // until the slab is freed
#endif
        slab->take_off(1);
    }

private:
    struct Line {
        alignas(cache_line) unsigned char contents[room];
        Slab* slab;
    };
    static_assert(sizeof(Line) == cache_line, "a line is a cache line");

    // Takes no memory before it is used. Its slab counts one line too many, so that it is never freed.
    struct Reserve;

    // The lines that this thread may still make. It has no destructor, so that it outlives the others.
    struct UnusedLines {
        Line* next;
        Slab* slab;  // perhaps freed, if `count` is 0
        std::uint32_t count;
        bool ended;
    };

    // Gives them back at the thread's end.
    struct ThreadEnd {
        ~ThreadEnd() {
            give_back(unused_);
            unused_.ended = true;
        }
    };

    explicit Slab(std::uint32_t lines) : counted_(lines) {}

    __attribute__((noinline)) static void renew(UnusedLines& unused) {
        assert(unused.count == 0 && "the last slab's lines are made");
        thread_local ThreadEnd end;
        // The first line of the memory that has room for the count before it. The last line ends with the
        // memory, or a little before.
        void* const memory = ::operator new(size);
        const auto begin = reinterpret_cast<std::uintptr_t>(memory);
        const std::uintptr_t lines = (begin + sizeof(Slab) + cache_line - 1) & ~(cache_line - 1);
        unused.count = static_cast<std::uint32_t>((begin + size - lines) / cache_line);
        assert(unused.count != 0 && lines + unused.count * sizeof(Line) <= begin + size);
        unused.next = reinterpret_cast<Line*>(lines);
        unused.slab = new (memory) Slab(unused.count);
    }

    // Forgets the slab, too, so that LeakSanitizer finds a line of it that is lost.
    static void give_back(UnusedLines& unused) {
        if (unused.count != 0) unused.slab->take_off(unused.count);
        unused.count = 0;
        unused.next = nullptr;
        unused.slab = nullptr;
    }

    // Release pairs with acquire, both here: see above.
    void take_off(std::uint32_t lines) {
        assert(lines != 0 && counted_.load(relaxed) >= lines && "a line is freed once");
        if (counted_.fetch_sub(lines, acq_rel) == lines) ::operator delete(this, size);
    }

    static inline thread_local UnusedLines unused_{};
    Atomic<std::uint32_t> counted_;
};

struct Slab::Reserve {
    static constexpr std::uint32_t size = 4096;
    Line lines[size];
    Slab slab{size + 1};
    Atomic<std::uint32_t> used{0};
};

inline void* Slab::make_reserved_line() noexcept {
    static Reserve reserve;
    if (reserve.used.load(relaxed) >= Reserve::size) return nullptr;
    const std::uint32_t place = reserve.used.fetch_add(1, relaxed);
    if (place >= Reserve::size) return nullptr;
    Line* const line = &reserve.lines[place];
    line->slab = &reserve.slab;
    return line;
}

}  // namespace callboard
