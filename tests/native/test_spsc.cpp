// The contract of the ring between one producer and one consumer; stress_spsc.cpp has the two threads.
#include <memory>

#include "callboard/mailbox/ordered/spsc.hpp"
#include "check.hpp"

using callboard::Spsc;

TEST("values come out of the ring in order") {
    Spsc<int> ring(4);
    for (int i = 0; i < 3; ++i) CHECK(ring.try_push(i));
    int value = -1;
    for (int i = 0; i < 3; ++i) {
        CHECK(ring.try_pop(value));
        CHECK_EQUAL(value, i);
    }
    CHECK(!ring.try_pop(value));
}

TEST("a look at the oldest value leaves it in the ring") {
    Spsc<int> ring(2);
    CHECK(ring.peek() == nullptr);
    CHECK(ring.try_push(4));
    CHECK(ring.try_push(5));
    CHECK(ring.peek() != nullptr && *ring.peek() == 4);
    CHECK_EQUAL(ring.size(), 2);
    ring.discard();
    CHECK(ring.peek() != nullptr && *ring.peek() == 5);
    CHECK_EQUAL(ring.size(), 1);
}

TEST("a full ring refuses, and takes one more for each that left, around and around") {
    for (const int capacity : {1, 2, 4}) {
        Spsc<int> ring(static_cast<std::size_t>(capacity));
        for (int i = 0; i < capacity; ++i) CHECK(ring.try_push(i));
        for (int i = 0; i < 20; ++i) {
            CHECK(!ring.try_push(-1));
            int value = -1;
            CHECK(ring.try_pop(value));
            CHECK_EQUAL(value, i);
            CHECK(ring.try_push(i + capacity));
        }
        CHECK_EQUAL(ring.size(), capacity);
    }
}

TEST("a value that can only be moved passes through the ring and is freed once") {
    Spsc<std::unique_ptr<int>> ring(2);
    CHECK(ring.try_push(std::make_unique<int>(5)));
    CHECK(ring.try_push(std::make_unique<int>(6)));
    std::unique_ptr<int> value;
    CHECK(ring.try_pop(value));
    CHECK(value != nullptr && *value == 5);
}

CHECK_MAIN
