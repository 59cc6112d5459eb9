// The contract of delegation, on one thread; stress_delegation.cpp has the contention.
#include <vector>

#include "callboard/mailbox/closable.hpp"
#include "callboard/mailbox/delegation.hpp"
#include "check.hpp"

namespace {

struct Request {
    int value;
    Request* next = nullptr;
};

using Resource = callboard::Delegation<Request>;
using Closable = callboard::ClosableDelegation<Request>;
using callboard::Handed;

std::vector<int> values(Request* request) {
    std::vector<int> all;
    for (; request != nullptr; request = request->next) all.push_back(request->value);
    return all;
}

}  // namespace

TEST("a free resource is owned by whoever comes first") {
    Resource resource;
    Request request{1};
    CHECK(resource.own_or_delegate(&request));
    CHECK(!resource.try_own());
    CHECK(!resource.has_pending());
    CHECK(resource.take() == nullptr);
    CHECK(resource.try_release());
    CHECK(resource.try_own());
}

TEST("an owned resource takes requests and hands them out oldest first") {
    Resource resource;
    Request requests[4] = {{0}, {1}, {2}, {3}};
    CHECK(resource.own_or_delegate(&requests[0]));
    for (int i = 1; i < 4; ++i) CHECK(!resource.own_or_delegate(&requests[i]));
    CHECK(resource.has_pending());
    CHECK(values(resource.take()) == std::vector<int>({1, 2, 3}));
    CHECK(!resource.has_pending());
    CHECK(!resource.try_own());
}

TEST("an owner cannot let go while a request is pending") {
    Resource resource;
    Request mine{0}, other{1};
    CHECK(resource.own_or_delegate(&mine));
    CHECK(!resource.own_or_delegate(&other));
    CHECK(!resource.try_release());
    CHECK(resource.take() == &other);
    CHECK(resource.try_release());
}

TEST("a request that is handed over while others are served is served too") {
    Resource resource;
    Request requests[3] = {{0}, {1}, {2}};
    CHECK(resource.own_or_delegate(&requests[0]));
    CHECK(!resource.own_or_delegate(&requests[1]));
    CHECK(values(resource.take()) == std::vector<int>({1}));
    CHECK(!resource.own_or_delegate(&requests[2]));
    CHECK(!resource.try_release());
    CHECK(values(resource.take()) == std::vector<int>({2}));
    CHECK(resource.try_release());
}

TEST("an owner may delegate to itself") {
    Resource resource;
    Request mine{0}, next{1};
    CHECK(resource.own_or_delegate(&mine));
    CHECK(!resource.own_or_delegate(&next));
    CHECK(resource.take() == &next);
    CHECK(resource.try_release());
}

TEST("only one can own without a request") {
    Resource resource;
    CHECK(resource.try_own());
    CHECK(!resource.try_own());
    CHECK(resource.try_release());
    CHECK(resource.try_own());
}

TEST("a request is handed over only if there is an owner") {
    Resource resource;
    Request request{1};
    CHECK(!resource.delegate_if_owned(&request));
    CHECK(resource.try_own());
    CHECK(resource.delegate_if_owned(&request));
    CHECK(!resource.try_release());
    CHECK(resource.take() == &request);
}

TEST("a request can be used again once it was served") {
    Resource resource;
    Request request{1};
    CHECK(resource.try_own());
    for (int i = 0; i < 3; ++i) {
        CHECK(resource.delegate_if_owned(&request));
        CHECK(values(resource.take()) == std::vector<int>({1}));
    }
    CHECK(resource.try_release());
}

TEST("a counted resource is free again when all that was due is settled") {
    callboard::CountedDelegation resource;
    CHECK(resource.own_or_delegate());
    CHECK(!resource.own_or_delegate());
    CHECK(!resource.own_or_delegate());
    CHECK_EQUAL(resource.settle(1), 2);
    CHECK(!resource.own_or_delegate());
    CHECK_EQUAL(resource.settle(2), 1);
    CHECK_EQUAL(resource.settle(1), 0);
    CHECK(resource.own_or_delegate());
}

TEST("a counted resource can be owned for nothing, if it is free, and has what comes meanwhile due") {
    callboard::CountedDelegation resource;
    CHECK(resource.try_own());
    CHECK(!resource.try_own());
    CHECK(!resource.own_or_delegate());
    CHECK_EQUAL(resource.settle(1), 1);
    CHECK(!resource.try_own());
    CHECK_EQUAL(resource.settle(1), 0);
    CHECK(resource.try_own());
}

TEST("an owner that sleeps is woken by the first request, and by no other") {
    Resource resource;
    callboard::Parker parker;
    Request first{1}, second{2};
    CHECK(resource.try_own());
    CHECK(resource.try_sleep(parker));
    CHECK(!resource.try_own());
    CHECK(!resource.has_pending());
    CHECK(!resource.own_or_delegate(&first));
    CHECK(parker.park(0));
    CHECK(resource.delegate_if_owned(&second));
    CHECK(!parker.park(0));
    resource.stay_awake();
    CHECK((values(resource.take()) == std::vector<int>{1, 2}));
    CHECK(resource.try_release());
}

TEST("an owner does not sleep beside a request, and lets go after it was not woken") {
    Resource resource;
    callboard::Parker parker;
    Request request{1};
    CHECK(resource.try_own());
    CHECK(resource.delegate_if_owned(&request));
    CHECK(!resource.try_sleep(parker));
    CHECK(resource.take() == &request);
    CHECK(resource.try_sleep(parker));
    resource.stay_awake();
    CHECK(resource.delegate_if_owned(&request));
    CHECK(!parker.park(0));  // it was awake
    CHECK(resource.take() == &request);
    CHECK(resource.try_release());
}

TEST("a resource that can be closed is owned, takes requests and is let go like another") {
    Closable resource;
    Request requests[3] = {{0}, {1}, {2}};
    CHECK(resource.own_or_delegate(&requests[0]) == Handed::mine);
    CHECK(!resource.try_own());
    CHECK(resource.own_or_delegate(&requests[1]) == Handed::delegated);
    CHECK(resource.own_or_delegate(&requests[2]) == Handed::delegated);
    CHECK(!resource.try_release());
    CHECK(values(resource.take()) == std::vector<int>({1, 2}));
    CHECK(resource.take() == nullptr);
    CHECK(resource.try_release());
    CHECK(resource.try_own());
}

TEST("an owner closes a resource only when nothing is pending, and then everybody is refused") {
    Closable resource;
    Request request{1};
    CHECK(!resource.try_close());  // nobody owns it
    CHECK(resource.try_own());
    CHECK(resource.own_or_delegate(&request) == Handed::delegated);
    CHECK(!resource.try_close());
    CHECK(!resource.is_closed());
    CHECK(resource.take() == &request);
    CHECK(resource.try_close());
    CHECK(resource.is_closed());
    CHECK(!resource.try_own());
    CHECK(resource.own_or_delegate(&request) == Handed::refused);
    CHECK(resource.leave(&request) == Closable::Left::refused);
    CHECK(!resource.try_release());
    resource.open();
    CHECK(resource.own_or_delegate(&request) == Handed::mine);
}

TEST("of those who leave requests at a free resource the first is to come back, and owns all of them") {
    Closable resource;
    Request requests[4] = {{0}, {1}, {2}, {3}};
    CHECK(resource.leave(&requests[0]) == Closable::Left::first);
    CHECK(resource.leave(&requests[1]) == Closable::Left::more);
    CHECK(!resource.try_own());
    CHECK(!resource.try_close());
    CHECK(resource.own_or_delegate(&requests[2]) == Handed::delegated);
    CHECK(values(resource.own_left()) == std::vector<int>({0, 1, 2}));
    CHECK(resource.leave(&requests[3]) == Closable::Left::more);  // there is an owner
    CHECK(!resource.try_close());
    CHECK(values(resource.take()) == std::vector<int>({3}));
    CHECK(resource.try_release());
}

TEST("a closable count is owned by whoever finds nothing due, and settled by weight") {
    callboard::ClosableCount count;
    CHECK(count.own_or_delegate(3) == Handed::mine);
    CHECK(count.own_or_delegate(4) == Handed::delegated);
    CHECK_EQUAL(count.due(), 7);
    CHECK_EQUAL(count.settle(3), 4);
    CHECK(!count.try_close());
    CHECK_EQUAL(count.settle(4), 0);
    CHECK(count.own_or_delegate(1) == Handed::mine);
    CHECK_EQUAL(count.settle(1), 0);
}

TEST("a count is closed when nobody owns it, and refuses whatever is added then") {
    callboard::ClosableCount count;
    CHECK(!count.is_closed());
    CHECK(count.try_close());
    CHECK(count.is_closed());
    CHECK(!count.try_close());
    CHECK(count.own_or_delegate(1) == Handed::refused);
    CHECK(count.own_or_delegate((std::int64_t{1} << 62)) == Handed::refused);
    CHECK(count.is_closed());
    count.open(5);
    CHECK_EQUAL(count.due(), 5);
    CHECK(!count.try_close());
    CHECK_EQUAL(count.settle(5), 0);
    CHECK(count.try_close());
}

CHECK_MAIN
