// The scheduler of Streams 4.2 (tests/bench/peers), on one thread and on a few that are driven step by step;
// stress_free_ports.cpp has the contention.
#include "../bench/peers/free_ports.hpp"

#include "check.hpp"
#include "stress.hpp"

using free_ports::Port;
using free_ports::Scheduler;
using stress::await;

namespace {

// An operator that notes what it gets and passes it on.
struct Noting {
    explicit Noting(std::size_t capacity) : port(execute, this, capacity) {}

    static void execute(void* self, int tuple) {
        auto& here = *static_cast<Noting*>(self);
        here.seen.push_back(tuple);
        if (here.next != nullptr) here.scheduler->push(*here.next, tuple);
        if (tuple == here.last) here.scheduler->close_ports();
    }

    Port<int> port;
    std::vector<int> seen;
    Scheduler<int>* scheduler{nullptr};
    Port<int>* next{nullptr};
    int last{-1};
};

std::vector<int> numbers(int count) {
    std::vector<int> all;
    for (int i = 0; i < count; ++i) all.push_back(i);
    return all;
}

}  // namespace

TEST("a port takes tuples until its ring is full, also after a push that succeeded") {
    Noting operator_(2);
    CHECK(operator_.port.push(0));
    CHECK(operator_.port.push(1));
    CHECK(!operator_.port.push(2));
    CHECK(operator_.port.try_consume());
    CHECK(!operator_.port.try_consume());
    int tuple = -1;
    CHECK(operator_.port.pop(tuple));
    CHECK_EQUAL(tuple, 0);
    operator_.port.stop_consuming();
    CHECK(operator_.port.push(2));
}

TEST("a pusher that finds a ring full works on it for a quarter, and then pushes") {
    Noting operator_(16);
    Scheduler<int> scheduler({&operator_.port});
    for (int i = 0; i < 16; ++i) scheduler.push(operator_.port, i);
    CHECK(operator_.seen.empty());
    scheduler.push(operator_.port, 16);
    CHECK(operator_.seen == numbers(4));
}

TEST("the source's thread alone brings everything through, in order") {
    Noting first(4), second(4), third(4);
    Scheduler<int> scheduler({&first.port, &second.port, &third.port});
    for (Noting* each : {&first, &second, &third}) each->scheduler = &scheduler;
    first.next = &second.port, second.next = &third.port, third.last = 99;
    scheduler.start(0, true);
    for (int i = 0; i < 100; ++i) scheduler.push(first.port, i);
    scheduler.schedule();
    CHECK(third.seen == numbers(100));
}

TEST("a suspended thread does nothing until it is resumed") {
    Noting operator_(4);
    operator_.last = 1;
    Scheduler<int> scheduler({&operator_.port});
    operator_.scheduler = &scheduler;
    scheduler.start(0, true);
    scheduler.suspend(0);
    scheduler.push(operator_.port, 0);
    scheduler.push(operator_.port, 1);
    std::thread other([&] { scheduler.resume(0); });
    scheduler.schedule();  // asleep until the other thread resumes it
    other.join();
    CHECK(operator_.seen == numbers(2));
}

TEST("a thread that is suspended in the middle of a push makes room for it all the same") {
    struct Many {
        static void execute(void* self, int) {
            auto& to = *static_cast<Noting*>(self);
            to.scheduler->suspend(0);
            for (int i = 0; i < 10; ++i) to.scheduler->push(to.port, i);
            to.scheduler->resume(0);
        }
    };
    Noting operator_(4);
    Port<int> sending(Many::execute, &operator_, 4);
    Scheduler<int> scheduler({&sending, &operator_.port});
    operator_.scheduler = &scheduler, operator_.last = 9;
    scheduler.start(0, true);
    scheduler.push(sending, 0);
    scheduler.schedule();
    CHECK(operator_.seen == numbers(10));
}

TEST("a thread that has found nothing for long sees new input") {
    callboard::Atomic<int> executed{0};
    const auto count = [](void* self, int) {
        static_cast<callboard::Atomic<int>*>(self)->fetch_add(1, callboard::relaxed);
    };
    Port<int> port(count, &executed, 4);
    Scheduler<int> scheduler({&port});
    scheduler.start(1);
    for (int i = 1; i <= 20; ++i) {
        scheduler.push(port, i);
        await([&] { return executed.load(callboard::relaxed) == i; });
    }
}

TEST("a shutdown drops all values on their way and ends every wait") {
    Noting first(2), second(2);
    Scheduler<int> scheduler({&first.port, &second.port});
    scheduler.start(2);
    scheduler.suspend(0);
    scheduler.shut_down();
    for (int i = 0; i < 10; ++i) scheduler.push(first.port, i);  // nobody takes them; it returns all the same
    CHECK(first.seen.empty());
}

CHECK_MAIN
