#include "callboard/core/threads/biased_lock.hpp"

#include "check.hpp"

using namespace callboard;

TEST("a visitor goes away while the owner is there") {
    BiasedLock lock;
    lock.lock();
    CHECK(!lock.try_visit());
    lock.unlock();
    CHECK(lock.try_visit());
    lock.leave();
}

TEST("one visitor at a time") {
    BiasedLock lock;
    CHECK(lock.try_visit());
    CHECK(!lock.try_visit());
    lock.leave();
    CHECK(lock.try_visit());
    lock.leave();
}

TEST("the owner comes back after a visit, and as often as it likes") {
    BiasedLock lock;
    for (int turn = 0; turn < 3; ++turn) {
        lock.lock();
        lock.unlock();
        CHECK(lock.try_visit());
        lock.leave();
    }
}

CHECK_MAIN
