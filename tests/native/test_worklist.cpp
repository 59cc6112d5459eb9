// The contract of the worklist, on one thread; stress_worklist.cpp has the contention.
#include <memory>

#include "callboard/mailbox/ordered/worklist.hpp"
#include "check.hpp"

using callboard::Worklist;

TEST("values come out in the order in which they went in, with their serial numbers") {
    Worklist<int> list(4);
    for (int i = 0; i < 3; ++i) CHECK_EQUAL(list.push(10 + i), i);
    int value = 0;
    for (int i = 0; i < 3; ++i) {
        CHECK_EQUAL(list.pop(value), i);
        CHECK_EQUAL(value, 10 + i);
    }
}

TEST("an empty worklist gives `none` and leaves the value alone") {
    Worklist<int> list(2);
    int value = 7;
    CHECK_EQUAL(list.pop(value), list.none);
    CHECK_EQUAL(value, 7);
    CHECK_EQUAL(list.push(1), 0);
    CHECK_EQUAL(list.pop(value), 0);
    CHECK_EQUAL(list.pop(value), list.none);
}

TEST("a full worklist takes nothing until one value is out") {
    Worklist<int> list(2);
    int value = 0;
    CHECK_EQUAL(list.push(1), 0);
    CHECK_EQUAL(list.push(2), 1);
    CHECK_EQUAL(list.push(3), list.none);
    CHECK_EQUAL(list.pop(value), 0);
    CHECK_EQUAL(list.push(4), 2);
    CHECK_EQUAL(list.push(5), list.none);
}

TEST("serial numbers go on counting around the ring, at every capacity from one") {
    for (const int capacity : {1, 2, 4, 8}) {
        Worklist<int> list(static_cast<std::size_t>(capacity));
        int value = 0;
        for (int round = 0; round < 5; ++round) {
            for (int i = 0; i < capacity; ++i) CHECK_EQUAL(list.push(i), round * capacity + i);
            CHECK_EQUAL(list.push(0), list.none);
            for (int i = 0; i < capacity; ++i) {
                CHECK_EQUAL(list.pop(value), round * capacity + i);
                CHECK_EQUAL(value, i);
            }
            CHECK_EQUAL(list.pop(value), list.none);
        }
    }
}

TEST("the capacity is the next power of two, and the size is the number of waiting values") {
    Worklist<int> list(5);
    CHECK_EQUAL(list.capacity(), 8);
    CHECK_EQUAL(list.size(), 0);
    for (int i = 0; i < 3; ++i) CHECK_EQUAL(list.push(i), i);
    CHECK_EQUAL(list.size(), 3);
}

TEST("a value that can only be moved passes through and is freed once") {
    Worklist<std::unique_ptr<int>> list(2);
    CHECK_EQUAL(list.push(std::make_unique<int>(5)), 0);
    CHECK_EQUAL(list.push(std::make_unique<int>(6)), 1);  // is still there when the worklist ends
    std::unique_ptr<int> value;
    CHECK_EQUAL(list.pop(value), 0);
    CHECK(value != nullptr && *value == 5);
}

CHECK_MAIN
