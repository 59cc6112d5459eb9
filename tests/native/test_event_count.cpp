// The contract of the event count; model_byte_ring.cpp has the threads.
#include "callboard/mailbox/shared/event_count.hpp"

#include "check.hpp"
#include "stepping.hpp"

using callboard::EventCount;

namespace {

bool wakes(EventCount& events) {
    bool woken = false;
    events.notify([&] { woken = true; });
    return woken;
}

}  // namespace

TEST("a notification before the sleep prevents it") {
    EventCount events{};
    const auto looked = events.look();
    CHECK(!wakes(events));
    CHECK(!events.try_sleep(looked));
}

TEST("the first notification of a sleeping waiter wakes it") {
    EventCount events{};
    CHECK(events.try_sleep(events.look()));
    CHECK(wakes(events));
    CHECK(!wakes(events));
}

TEST("a waiter that woke by itself is not woken") {
    EventCount events{};
    CHECK(events.try_sleep(events.look()));
    events.awake();
    CHECK(!wakes(events));
    CHECK(events.try_sleep(events.look()));
}

TEST("a notifier that is stopped before it wakes the waiter leaves that to the next one") {
    EventCount events{};
    CHECK(events.try_sleep(events.look()));
    bool woken = false;
    events.notify([&] { woken = wakes(events); });
    CHECK(woken);
}

TEST("a notifier that comes late does not take the wake-up of a later sleep") {
    EventCount events{};
    CHECK(events.try_sleep(events.look()));
    events.notify([&] {
        events.awake();
        CHECK(events.try_sleep(events.look()));
    });
    CHECK(wakes(events));
}

struct SharedSleep {
    EventCount events;
    bool is_woken;
};

TEST("a notifier that is stopped at any instruction does not keep the wake-up of others") {
    stepping::Shared<SharedSleep> shared, left;
    CHECK(shared->events.try_sleep(shared->events.look()));
    int without_another = 0;
    stepping::after_each_instruction([&] { shared->events.notify([&] { shared->is_woken = true; }); }, [&] {
        left.copy(shared);
        CHECK(wakes(left->events) || shared->is_woken);
        without_another += shared->is_woken;
    });
    CHECK(without_another != 0 || !shared->is_woken);
}

CHECK_MAIN
