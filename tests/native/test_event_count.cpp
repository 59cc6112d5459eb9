// The contract of the event count; model_byte_ring.cpp has the threads.
#include "callboard/mailbox/shared/event_count.hpp"

#include "check.hpp"

using callboard::EventCount;

TEST("a notification before the sleep prevents it") {
    EventCount events{};
    const auto looked = events.look();
    CHECK(!events.notify());
    CHECK(!events.try_sleep(looked));
}

TEST("the first notification of a sleeping waiter wakes it") {
    EventCount events{};
    CHECK(events.try_sleep(events.look()));
    CHECK(events.notify());
    CHECK(!events.notify());
}

TEST("a waiter that woke by itself is not woken") {
    EventCount events{};
    CHECK(events.try_sleep(events.look()));
    events.awake();
    CHECK(!events.notify());
    CHECK(events.try_sleep(events.look()));
}

CHECK_MAIN
