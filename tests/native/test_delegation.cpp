// The contract of delegation, on one thread; stress_delegation.cpp has the contention.
#include <vector>

#include "callboard/mailbox/delegation.hpp"
#include "check.hpp"

namespace {

struct Request {
    int value;
    Request* next = nullptr;
};

using Resource = callboard::Delegation<Request>;

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

TEST("a counted resource can be owned without a request if it is free, and then serves those that come") {
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

CHECK_MAIN
