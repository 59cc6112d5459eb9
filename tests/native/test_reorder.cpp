// One contract for all reorder buffers, on one thread; stress_reorder.cpp has the contention.
#include <algorithm>
#include <memory>
#include <vector>

#include "callboard/mailbox/ordered/reorder.hpp"
#include "../bench/peers/reorder_locked.hpp"
#include "reorder_flag.hpp"
#include "check.hpp"

namespace {

template <class Buffer>
struct Fixture {
    Buffer buffer;
    std::vector<int> sent;

    explicit Fixture(std::size_t capacity) : buffer(capacity) {}
    bool send(std::int64_t serial) {
        return buffer.send(serial, static_cast<int>(serial), [this](int& value) { sent.push_back(value); });
    }
};

std::vector<int> up_to(int end) {
    std::vector<int> numbers;
    for (int i = 0; i < end; ++i) numbers.push_back(i);
    return numbers;
}

template <class Buffer>
void holds_what_came_early() {
    Fixture<Buffer> fixture(4);
    CHECK(fixture.send(2));
    CHECK(fixture.send(1));
    CHECK(fixture.sent.empty());
    CHECK_EQUAL(fixture.buffer.next(), 0);
    CHECK(fixture.send(0));
    CHECK(fixture.sent == up_to(3));
    CHECK_EQUAL(fixture.buffer.next(), 3);
}

template <class Buffer>
void refuses_what_does_not_fit() {
    Fixture<Buffer> fixture(4);
    CHECK(fixture.buffer.has_room(3));
    CHECK(!fixture.buffer.has_room(4));
    CHECK(!fixture.send(4));
    CHECK(fixture.send(3));
    CHECK(fixture.send(0));
    CHECK(fixture.send(1));
    CHECK(fixture.buffer.has_room(4));
    CHECK(!fixture.buffer.has_room(6));
    CHECK(fixture.send(4));
    CHECK(fixture.sent == up_to(2));
    CHECK(fixture.send(2));
    CHECK(fixture.sent == up_to(5));
}

template <class Buffer>
void keeps_order_for_every_permutation() {
    for (const int capacity : {1, 2, 4, 8}) {
        std::vector<int> order = up_to(6);
        do {
            Fixture<Buffer> fixture(static_cast<std::size_t>(capacity));
            std::vector<int> waiting = order;
            while (!waiting.empty()) {  // who is refused comes again
                std::vector<int> refused;
                for (int serial : waiting) if (!fixture.send(serial)) refused.push_back(serial);
                CHECK(refused.size() < waiting.size());
                waiting = refused;
            }
            CHECK(fixture.sent == up_to(6));
        } while (std::next_permutation(order.begin(), order.end()));
    }
}

template <class Buffer>
void hands_a_refused_value_back() {
    Buffer buffer(2);
    auto value = std::make_unique<int>(2);
    std::vector<int> sent;
    const auto sink = [&sent](std::unique_ptr<int>& moved) {
        sent.push_back(*std::unique_ptr<int>(std::move(moved)));
    };
    CHECK(!buffer.send(2, std::move(value), sink));
    CHECK(value != nullptr);
    CHECK(buffer.send(1, std::make_unique<int>(1), sink));
    CHECK(buffer.send(0, std::make_unique<int>(0), sink));
    CHECK(buffer.send(2, std::move(value), sink));
    CHECK(value == nullptr);
    CHECK(sent == up_to(3));
}

using callboard::FlagReorderBuffer;
using callboard::LockedReorderBuffer;
using callboard::ReorderBuffer;

// Each value is added while the one before it is being sent, by a sink that stands for another worker: one
// endless run, in which room must be told of in time.
template <class Buffer>
void tells_of_room_in_an_endless_run() {
    for (const std::int64_t capacity : {1, 2, 4, 16}) {
        Buffer buffer(static_cast<std::size_t>(capacity));
        const auto unused = [](std::int64_t&) { CHECK(!"nobody else sends"); };
        const auto sink = [&](std::int64_t& value) {
            CHECK(buffer.has_room(value + capacity / 2));
            CHECK(!buffer.has_room(value + capacity));
            if (value < 50 && capacity > 1) CHECK(buffer.send(value + 1, value + 1, unused));
        };
        CHECK(buffer.send(0, 0, sink));
        CHECK_EQUAL(buffer.next(), capacity > 1 ? 51 : 1);
    }
}

}  // namespace

TEST("a value waits for all that come before it, and leaves with them") {
    holds_what_came_early<ReorderBuffer<int>>();
    holds_what_came_early<FlagReorderBuffer<int>>();
    holds_what_came_early<LockedReorderBuffer<int>>();
}

TEST("a value beyond the ring is refused until the ones before it have left") {
    refuses_what_does_not_fit<ReorderBuffer<int>>();
    refuses_what_does_not_fit<FlagReorderBuffer<int>>();
    refuses_what_does_not_fit<LockedReorderBuffer<int>>();
}

TEST("every permutation of arrivals leaves in order, at every capacity from one") {
    keeps_order_for_every_permutation<ReorderBuffer<int>>();
    keeps_order_for_every_permutation<FlagReorderBuffer<int>>();
    keeps_order_for_every_permutation<LockedReorderBuffer<int>>();
}

TEST("a value that is refused is still its sender's") {
    hands_a_refused_value_back<ReorderBuffer<std::unique_ptr<int>>>();
    hands_a_refused_value_back<FlagReorderBuffer<std::unique_ptr<int>>>();
    hands_a_refused_value_back<LockedReorderBuffer<std::unique_ptr<int>>>();
}

TEST("in an endless run, there is room for half a ring beyond the value that is sent") {
    tells_of_room_in_an_endless_run<ReorderBuffer<std::int64_t>>();
    tells_of_room_in_an_endless_run<FlagReorderBuffer<std::int64_t>>();
}

CHECK_MAIN
