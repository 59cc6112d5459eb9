// The limits of a mailbox, on one thread; stress_limits.cpp has the waiting senders.
#include <thread>

#include "callboard/mailbox/limits.hpp"
#include "check.hpp"

using callboard::Limits;
using callboard::Parker;

static constexpr std::int64_t capacity = 3;

TEST("room is taken up to the capacity and not beyond") {
    Limits limits(capacity, 0);
    CHECK_EQUAL(limits.reserve(2), 2);
    CHECK_EQUAL(limits.reserve(2), 1);
    CHECK_EQUAL(limits.reserve(1), 0);
    CHECK_EQUAL(limits.count(), capacity);
}

TEST("room that was given back can be taken again") {
    Limits limits(capacity, 0);
    CHECK_EQUAL(limits.reserve(3), 3);
    limits.give_back(2);
    CHECK_EQUAL(limits.reserve(3), 2);
}

TEST("a sender that exceeds the capacity leaves no room until it is made up for") {
    Limits limits(capacity, 0);
    CHECK_EQUAL(limits.reserve(3), 3);
    limits.exceed(2);
    CHECK_EQUAL(limits.count(), 5);
    limits.give_back(2);
    CHECK_EQUAL(limits.reserve(1), 0);
    limits.give_back(1);
    CHECK_EQUAL(limits.reserve(1), 1);
}

TEST("nobody waits where there is room") {
    Limits limits(capacity, 0);
    Parker parker;
    limits.wait_for_room(parker, INT64_C(60'000'000'000));  // would be noticed
    CHECK_EQUAL(limits.reserve(1), 1);
}

TEST("a wait for room ends with its time") {
    Limits limits(1, 0);
    CHECK_EQUAL(limits.reserve(1), 1);
    Parker parker;
    limits.wait_for_room(parker, 1000000);
    CHECK_EQUAL(limits.count(), 1);
}

TEST("a thread that waits for room is woken for another reason by its parker") {
    Limits limits(1, 0);
    CHECK_EQUAL(limits.reserve(1), 1);
    Parker parker;
    parker.unpark();
    limits.wait_for_room(parker, INT64_C(60'000'000'000));  // would be noticed
    CHECK_EQUAL(limits.reserve(1), 0);
}

TEST("room wakes all threads that wait, and no thread that has left") {
    Limits limits(1, 0);
    CHECK_EQUAL(limits.reserve(1), 1);
    Parker parkers[3], gone;
    limits.wait_for_room(gone, 0);
    std::thread waiters[3];
    for (int i = 0; i < 3; ++i)
        waiters[i] = std::thread([&, i] { limits.wait_for_room(parkers[i], INT64_C(60'000'000'000)); });
    for (const Parker& parker : parkers)
        while (!parker.is_parked()) std::this_thread::yield();
    limits.give_back(1);
    for (std::thread& waiter : waiters) waiter.join();
    CHECK(!gone.park(0));
}

TEST("a mailbox without a capacity counts sent and taken messages") {
    Limits limits(Limits::no_capacity, 0);
    CHECK(limits.only_counts());
    CHECK_EQUAL(limits.reserve(5), 5);
    limits.exceed(2);
    limits.give_back(4);
    CHECK_EQUAL(limits.count(), 3);
    CHECK_EQUAL(limits.peak.load(std::memory_order_relaxed), 7);
    limits.exceed(3);
    CHECK_EQUAL(limits.peak.load(std::memory_order_relaxed), 7);
    limits.take_back(1);
    CHECK_EQUAL(limits.count(), 5);
    CHECK(limits.has_room());
}

TEST("room that is not used is taken back") {
    Limits limits(capacity, 0);
    CHECK_EQUAL(limits.reserve(3), 3);
    limits.take_back(1);
    CHECK_EQUAL(limits.count(), 2);
}

CHECK_MAIN
