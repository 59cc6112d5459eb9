// Slabs, and the lines that are made of them. Every slab is counted here, so one that is never freed, or
// freed too early, shows without a sanitizer.
#include <malloc.h>
#include <set>
#include <thread>
#include <vector>

#include "callboard/core/memory/node.hpp"
#include "callboard/core/memory/slab.hpp"
#include "check.hpp"
#include "counted_slabs.hpp"

using callboard::Slab;
using callboard::cache_line;

// Slabs since it was made.
struct Balance {
    long made_before = made.load(callboard::relaxed), freed_before = freed.load(callboard::relaxed);
    long made_since() const { return made.load(callboard::relaxed) - made_before; }
    long freed_since() const { return freed.load(callboard::relaxed) - freed_before; }
};

// In a thread of its own, so that it begins without a slab; checks at the end that all are freed.
template <class Body>
static void in_a_thread(Body body) {
    const Balance balance;
    std::thread(body, std::cref(balance)).join();
    CHECK(balance.made_since() > 0);
    CHECK_EQUAL(balance.made_since(), balance.freed_since());
}

static std::vector<void*> make(std::size_t count) {
    std::vector<void*> lines(count);
    for (void*& line : lines) line = Slab::make_line();
    return lines;
}

static void free_all(const std::vector<void*>& lines) {
    for (void* line : lines) Slab::free_line(line);
}

TEST("lines are distinct cache lines, and keep their contents") {
    in_a_thread([](const Balance&) {
        const std::vector<void*> lines = make(1000);
        for (std::size_t i = 0; i < lines.size(); ++i) std::memset(lines[i], static_cast<int>(i), Slab::room);
        for (std::size_t i = 0; i < lines.size(); ++i) {
            CHECK_EQUAL(reinterpret_cast<std::uintptr_t>(lines[i]) % cache_line, 0u);
            const auto* bytes = static_cast<const unsigned char*>(lines[i]);
            CHECK(std::set<int>(bytes, bytes + Slab::room) == std::set<int>({static_cast<int>(i % 256)}));
        }
        CHECK_EQUAL(std::set<void*>(lines.begin(), lines.end()).size(), lines.size());
        free_all(lines);
    });
}

TEST("of a slab of 2 KiB 30 or 31 lines are used") {
    in_a_thread([](const Balance& balance) {
        const std::vector<void*> lines = make(30 * 31 * 100);
        CHECK(balance.made_since() <= 31 * 100);
        CHECK(balance.made_since() >= 30 * 100);
        free_all(lines);
    });
}

TEST("a slab is freed with the last of its lines, whichever that is") {
    in_a_thread([](const Balance& balance) {
        std::vector<void*> lines;
        while (balance.made_since() < 3) lines.push_back(Slab::make_line());
        // Two are used up, and the third one's first line is the last that was made.
        for (std::size_t i = lines.size() - 1; i > 1; --i) Slab::free_line(lines[i]);
        CHECK_EQUAL(balance.freed_since(), 1);
        Slab::free_line(lines[1]);
        CHECK_EQUAL(balance.freed_since(), 1);
        Slab::free_line(lines[0]);
        CHECK_EQUAL(balance.freed_since(), 2);
    });
}

TEST("a thread that ends gives back the lines that it did not make, and those that it made stay") {
    const Balance balance;
    void* line = nullptr;
    std::thread([&] {
        free_all(make(10));
        line = Slab::make_line();
    }).join();
    CHECK_EQUAL(balance.made_since(), 1);
    CHECK_EQUAL(balance.freed_since(), 0);
    std::memset(line, 1, Slab::room);
    Slab::free_line(line);
    CHECK_EQUAL(balance.freed_since(), 1);
}

TEST("a thread may end after any number of lines, with its slab used up or not") {
    for (std::size_t count = 1; count < 70; ++count)
        in_a_thread([&](const Balance&) { free_all(make(count)); });
}

TEST("a line made after the thread's end, by a later destructor, is freed as well") {
    struct Last {
        void* line = nullptr;
        ~Last() {
            Slab::free_line(line);
            for (int i = 0; i < 100; ++i) Slab::free_line(Slab::make_line());
        }
    };
    in_a_thread([](const Balance&) {
        thread_local Last last;  // begun before the thread's first slab
        last.line = Slab::make_line();
    });
}

TEST("without memory a line is not made, and the next one is") {
    in_a_thread([](const Balance&) {
        is_memory_out.store(true, callboard::relaxed);
        bool thrown = false;
        try {
            Slab::make_line();
        } catch (const std::bad_alloc&) {
            thrown = true;
        }
        is_memory_out.store(false, callboard::relaxed);
        CHECK(thrown);
        made.fetch_sub(1, callboard::relaxed);  // it was not
        Slab::free_line(Slab::make_line());
    });
}

TEST("a node is taken of the reserve when memory is out") {
    in_a_thread([](const Balance&) {
        callboard::FreeList list;
        callboard::BasicNodeCache<2, 4> cache;
        std::vector<callboard::Node*> nodes = {cache.take(list)};
        nodes.reserve(100);
        is_memory_out.store(true, callboard::relaxed);
        while (callboard::Node* const node = cache.try_take(list)) nodes.push_back(node);
        CHECK(nodes.size() <= 31);  // what was left of the slab
        nodes.push_back(cache.take_reserved(list));
        is_memory_out.store(false, callboard::relaxed);
        CHECK(nodes.back() != nullptr);
        made.fetch_sub(2, callboard::relaxed);  // they were not
        for (callboard::Node* const node : nodes) delete node;
    });
}

TEST("the reserve has lines without memory until it is used up, and nothing fills it again") {
    std::vector<void*> lines;
    lines.reserve(10'000);
    is_memory_out.store(true, callboard::relaxed);
    while (void* const line = Slab::make_reserved_line()) lines.push_back(line);
    is_memory_out.store(false, callboard::relaxed);
    CHECK(lines.size() > 4000);
    CHECK_EQUAL(std::set<void*>(lines.begin(), lines.end()).size(), lines.size());
    for (void* const line : lines) CHECK_EQUAL(reinterpret_cast<std::uintptr_t>(line) % cache_line, 0u);
    free_all(lines);
    CHECK(Slab::make_reserved_line() == nullptr);
}

TEST("to free nothing does nothing") { Slab::free_line(nullptr); }

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)
TEST("bursts take the memory of those before, whatever else was allocated between them") {
    in_a_thread([](const Balance&) {
        std::vector<void*> others;
        std::size_t first = 0, last = 0;
        for (int burst = 0; burst < 8; ++burst) {
            const std::vector<void*> lines = make(31 * 2000);
            last = mallinfo2().arena + mallinfo2().hblkhd;
            if (burst == 0) first = last;
            for (int i = 0; i < 2000; ++i) others.push_back(std::malloc(40));
            free_all(lines);
        }
        for (void* other : others) std::free(other);
        CHECK(last < first + first / 2);  // and not eightfold
    });
}
#endif

CHECK_MAIN
