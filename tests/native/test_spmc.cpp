// The contract of the ring between one producer and many consumers; stress_hybrid.cpp has the threads.
#include "callboard/mailbox/ordered/spmc.hpp"
#include "check.hpp"

using callboard::Spmc;

TEST("small values come out of the ring in order") {
    Spmc<unsigned> ring(4);
    unsigned value = 9;
    CHECK(!ring.try_pop(value));
    for (unsigned i = 0; i < 3; ++i) CHECK(ring.try_push(i));
    CHECK_EQUAL(ring.size(), 3);
    for (unsigned i = 0; i < 3; ++i) {
        CHECK(ring.try_pop(value));
        CHECK_EQUAL(value, i);
    }
    CHECK(!ring.try_pop(value));
    CHECK_EQUAL(value, 2u);
}

TEST("a full ring of small values refuses, and takes one more for each that left, around and around") {
    for (const unsigned capacity : {1u, 2u, 4u}) {
        Spmc<unsigned> ring(capacity);
        for (unsigned i = 0; i < capacity; ++i) CHECK(ring.try_push(i));
        for (unsigned i = 0; i < 20; ++i) {
            CHECK(!ring.try_push(99));
            unsigned value = 99;
            CHECK(ring.try_pop(value));
            CHECK_EQUAL(value, i);
            CHECK(ring.try_push(i + capacity));
        }
        CHECK_EQUAL(ring.size(), static_cast<std::int64_t>(capacity));
    }
}

TEST("several values can be taken at once, with the serial number of the first") {
    Spmc<unsigned> ring(4);
    unsigned values[4];
    std::int64_t first;
    CHECK_EQUAL(ring.try_pop(values, 4, first), 0);
    for (unsigned i = 0; i < 3; ++i) CHECK(ring.try_push(i));
    CHECK_EQUAL(ring.try_pop(values, 2, first), 2);
    CHECK_EQUAL(first, 0);
    CHECK_EQUAL(values[1], 1u);
    for (unsigned i = 3; i < 5; ++i) CHECK(ring.try_push(i));
    CHECK_EQUAL(ring.try_pop(values, 4, first), 3);
    CHECK_EQUAL(first, 2);
    CHECK_EQUAL(values[2], 4u);
}

TEST("a serial number can be skipped while nothing is in the ring, as often as one likes") {
    Spmc<unsigned> ring(2);
    unsigned value;
    std::int64_t first;
    for (unsigned i = 0; i < 20; ++i) {
        CHECK(ring.try_skip());
        CHECK_EQUAL(ring.size(), 0);
        CHECK(!ring.try_pop(value));
        CHECK(ring.try_push(i));
        CHECK(!ring.try_skip());
        CHECK(ring.try_push(99));
        CHECK(!ring.try_push(99));
        CHECK_EQUAL(ring.try_pop(&value, 1, first), 1);
        CHECK_EQUAL(first, 3 * i + 1);
        CHECK_EQUAL(value, i);
        CHECK(ring.try_pop(value));
        CHECK_EQUAL(value, 99u);
    }
}

CHECK_MAIN
