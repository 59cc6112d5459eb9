// Threads that delegate requests to each other. The resource is plain memory: two owners at once, or an
// owner that is not ordered after the last one, are data races.
#include <algorithm>
#include <memory>

#include "callboard/mailbox/delegation.hpp"
#include "stress.hpp"

using callboard::Atomic;
using namespace stress;

namespace {

struct Request {
    std::int64_t stamped = 0;
    int served = 0;                  // plain: the owner's business
    Atomic<bool> ready_again{true};  // set by the owner as its last touch
    Request* next = nullptr;
};

struct Resource {
    callboard::Delegation<Request> door;
    Ledger ledger;
    int inside = 0, most_inside = 0;
    std::int64_t delegated = 0;

    explicit Resource(int threads) : ledger(threads) {}

    void serve(Request* request) {
        most_inside = std::max(most_inside, ++inside);
        ledger.receive(request->stamped);
        ++request->served;
        --inside;
        request->ready_again.store(true, callboard::release);
    }

    // The owner: everything that was handed over, until it may let go.
    void serve_the_others() {
        while (!door.try_release()) {
            for (Request* request = door.take(); request != nullptr;) {
                Request* following = request->next;
                ++delegated;
                serve(request);
                request = following;
            }
        }
    }

    void submit(Request* request) {
        if (!door.own_or_delegate(request)) return;
        serve(request);
        serve_the_others();
    }

    // The same guarantee from the other two entries: hand over if there is an owner, else be it.
    void submit_in_two_steps(Request* request) {
        while (!door.delegate_if_owned(request)) {
            if (!door.try_own()) continue;
            serve(request);
            serve_the_others();
            return;
        }
    }
};

template <class Submit>
void every_request_is_served_once(int threads, int requests, Submit submit) {
    // Few requests, used again as soon as they were served: the same addresses come back to the
    // top of the stack all the time, which is what an ABA problem needs.
    constexpr int own = 3;
    Resource resource(threads);
    std::unique_ptr<Request[]> all(new Request[static_cast<std::size_t>(threads * own)]);
    together(threads, [&](int index) {
        Random random(static_cast<std::uint64_t>(index));
        for (int number = 0; number < requests; ++number) {
            Request* request = &all[static_cast<std::size_t>(index * own + number % own)];
            while (!request->ready_again.load(callboard::acquire)) std::this_thread::yield();
            request->ready_again.store(false, callboard::relaxed);
            request->stamped = stamp(index, number);
            submit(resource, request);
            random.pause();
        }
    });
    CHECK(resource.door.try_own());
    CHECK_EQUAL(resource.ledger.received(), std::int64_t{threads} * requests);
    CHECK_EQUAL(resource.ledger.wrong(), 0);
    CHECK_EQUAL(resource.most_inside, 1);
    int served = 0;
    for (int i = 0; i < threads * own; ++i) {
        CHECK(all[static_cast<std::size_t>(i)].ready_again.load(callboard::acquire));
        served += all[static_cast<std::size_t>(i)].served;
    }
    CHECK_EQUAL(served, threads * requests);
}

// Requests that are all alike: whoever owns serves as many as are due. Some own for a request of nobody.
void every_counted_request_is_served_once(int threads, int requests) {
    callboard::CountedDelegation door;
    std::int64_t served = 0, nobodys = 0;  // plain: the owner's business
    int inside = 0, wrong = 0;
    together(threads, [&](int index) {
        Random random(static_cast<std::uint64_t>(index));
        for (int number = 0; number < requests; ++number) {
            const bool tries = number % 4 == 3 && door.try_own();
            if (tries) ++nobodys;
            if (tries || door.own_or_delegate()) {
                for (std::int64_t due = 1; due != 0; due = door.settle(due)) {
                    wrong += ++inside != 1;
                    served += due;
                    --inside;
                }
            }
            random.pause();
        }
    });
    CHECK(door.own_or_delegate());
    CHECK_EQUAL(served, std::int64_t{threads} * requests);
    CHECK(nobodys > 0);
    CHECK_EQUAL(wrong, 0);
}

}  // namespace

TEST("every request is served once, in its thread's order, by one owner at a time") {
    for (const int threads : {2, 4}) {
        every_request_is_served_once(threads, 500000, [](Resource& resource, Request* request) {
            resource.submit(request);
        });
    }
}

TEST("the fulfilment guarantee holds for all ways to hand over") {
    every_request_is_served_once(4, 400000, [](Resource& resource, Request* request) {
        if (request->stamped & 1) resource.submit(request);
        else resource.submit_in_two_steps(request);
    });
}

TEST("requests that are counted are served by one owner at a time, as many as were made") {
    for (const int threads : {2, 4}) every_counted_request_is_served_once(threads, 200000);
}

TEST("an owner that sleeps is woken by a request") {
    constexpr int senders = 2;
    Rounds rounds(20000);
    Resource resource(senders);
    callboard::Parker parker;
    Atomic<int> left{senders};
    CHECK(resource.door.try_own());
    together(senders + 1, [&](int index) {
        Random random(static_cast<std::uint64_t>(index));
        if (index < senders) {
            Request request;
            for (int round = 0; index != 0 ? !rounds.over() : rounds.go_on(round + 1); ++round) {
                request.stamped = stamp(index, round);
                request.ready_again.store(false, callboard::relaxed);
                CHECK(resource.door.delegate_if_owned(&request));
                await([&] { return request.ready_again.load(callboard::acquire); });
                random.pause();
            }
            if (left.fetch_sub(1, callboard::acq_rel) == 1) parker.unpark();
            return;
        }
        while (left.load(callboard::acquire) != 0) {
            for (Request* request = resource.door.take(); request != nullptr;) {
                Request* following = request->next;
                resource.serve(request);
                request = following;
            }
            random.pause();
            if (!resource.door.try_sleep(parker)) continue;
            if (!parker.park(patience)) check::give_up(__FILE__, __LINE__, "a lost wake-up");
            resource.door.stay_awake();
        }
    });
    CHECK(resource.door.try_release());
    CHECK(resource.ledger.received() > 0);
    CHECK_EQUAL(resource.ledger.wrong(), 0);
}

CHECK_MAIN
