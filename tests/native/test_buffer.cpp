// Buffers: their references, and allocations without memory.
#include "callboard/core/memory/buffer.hpp"

#include "check.hpp"

using namespace callboard;

TEST("a buffer is destroyed once, with its last reference") {
    static int destroyed = 0;
    Buffer buffer;
    buffer.destroy = [](Buffer*) { ++destroyed; };
    buffer.retain();
    buffer.drop();
    CHECK_EQUAL(destroyed, 0);
    buffer.drop();
    CHECK_EQUAL(destroyed, 1);
}

#ifndef __SANITIZE_ADDRESS__  // which ends the program there
TEST("a buffer that there is no memory for is an exception") {
    volatile std::int64_t bytes = INT64_MAX;
    bool thrown = false;
    try {
        Buffer::allocate(bytes)->drop();
    } catch (const std::bad_alloc&) {
        thrown = true;
    }
    CHECK(thrown);
}
#endif

CHECK_MAIN
