// Threads that hand requests to each other's ownership. The resource is plain memory: two owners at
// once, or an owner that is not ordered after the last one, are data races.
#include <algorithm>
#include <memory>

#include "callboard/mailbox/closable.hpp"
#include "callboard/mailbox/delegation.hpp"
#include "stress.hpp"

using callboard::Atomic;
using namespace stress;

namespace {

struct Request {
    std::int64_t stamped = 0;
    int served = 0;                // plain: the owner's business
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

// A resource that is closed at once when nothing is pending; whoever is refused goes to the next one.
struct Closed {
    callboard::ClosableDelegation<Request> door;
    Ledger ledger;
    int inside = 0, wrong = 0;
    explicit Closed(int threads) : ledger(threads) {}

    void serve(Request* requests) {
        while (requests != nullptr) {
            Request* const following = requests->next;
            wrong += ++inside != 1;
            ++requests->served;
            --inside;
            requests->ready_again.store(true, callboard::release);
            requests = following;
        }
    }
};

// Each thread's request goes to the newest resource, handed over or left, and the next resource is opened by whoever
// closed the last one, which nobody is at.
void every_request_is_served_though_resources_close(int threads, int requests) {
    constexpr int most = 1 << 20;
    std::unique_ptr<Atomic<Closed*>[]> all(new Atomic<Closed*>[most]());
    std::vector<std::unique_ptr<Closed>> kept[8];
    Atomic<int> newest{0};
    kept[0].push_back(std::make_unique<Closed>(threads));
    all[0].store(kept[0].back().get(), callboard::relaxed);
    std::vector<std::unique_ptr<Request>> mine;
    for (int i = 0; i < threads; ++i) mine.push_back(std::make_unique<Request>());
    Atomic<int> refused{0};
    together(threads, [&](int index) {
        Random random(static_cast<std::uint64_t>(index));
        Request* const request = mine[static_cast<std::size_t>(index)].get();
        for (int number = 0; number < requests; ++number) {
            const std::int64_t end = callboard::monotonic_ns() + patience;
            while (!request->ready_again.load(callboard::acquire)) {
                if (callboard::monotonic_ns() > end) check::give_up(__FILE__, __LINE__, "a request was lost");
                std::this_thread::yield();
            }
            request->ready_again.store(false, callboard::relaxed);
            for (bool handed = false; !handed;) {
                const int at = newest.load(callboard::acquire);
                Closed& resource = *all[at].load(callboard::acquire);
                Request* due = nullptr;
                bool owns = false;
                if (random.below(2) == 0) {
                    const auto answer = resource.door.own_or_delegate(request);
                    handed = answer != callboard::Handed::refused;
                    owns = answer == callboard::Handed::mine;
                    if (owns) {
                        request->next = nullptr;
                        due = request;
                    }
                } else {
                    const auto left = resource.door.leave(request);
                    handed = left != decltype(resource.door)::Left::refused;
                    owns = left == decltype(resource.door)::Left::first;
                    if (owns) {
                        random.pause();
                        due = resource.door.own_left();
                    }
                }
                if (!handed) refused.fetch_add(1, callboard::relaxed);
                if (!owns) continue;
                const bool closes = random.below(4) == 0;
                for (;; due = resource.door.take()) {
                    resource.serve(due);
                    if (!closes && resource.door.try_release()) break;
                    if (!closes || !resource.door.try_close()) continue;
                    kept[index].push_back(std::make_unique<Closed>(threads));
                    all[at + 1].store(kept[index].back().get(), callboard::release);
                    newest.store(at + 1, callboard::release);
                    break;
                }
            }
            random.pause();
        }
    });
    int served = 0;
    for (const auto& request : mine) {
        CHECK(request->ready_again.load(callboard::acquire));
        served += request->served;
    }
    CHECK_EQUAL(served, threads * requests);
    for (const auto& some : kept)
        for (const auto& resource : some) CHECK_EQUAL(resource->wrong, 0);
    CHECK(newest.load(callboard::relaxed) > 0);
}

// Weights that are added to counts which are closed and opened again by one thread.
void no_weight_is_lost_at_a_count_that_closes(int threads, int requests) {
    constexpr int counts = 10000, heaviest = 5;
    const std::int64_t most = std::int64_t{heaviest} * threads * requests;
    struct Weighed {
        callboard::ClosableCount count;
        std::int64_t served = 0;  // plain: the owner's business
    };
    std::unique_ptr<Weighed[]> all(new Weighed[counts]);
    Atomic<int> newest{0};
    Atomic<std::int64_t> taken{0};
    together(threads, [&](int index) {
        Random random(static_cast<std::uint64_t>(index));
        std::int64_t sum = 0;
        for (int number = 0; number < requests; ++number) {
            const std::int64_t weight = 1 + random.below(heaviest);
            for (;;) {
                const int at = newest.load(callboard::acquire);
                Weighed& one = all[at];
                const auto answer = one.count.own_or_delegate(weight);
                if (answer == callboard::Handed::refused) continue;
                sum += weight;
                if (answer == callboard::Handed::delegated) break;
                for (std::int64_t due = weight; due != 0; due = one.count.settle(due)) {
                    if (due < 0 || due > most) check::give_up(__FILE__, __LINE__, "closed under its owner");
                    one.served += due;
                }
                if (at + 1 < counts && random.below(8) == 0 && one.count.try_close()) {
                    if (newest.exchange(at + 1, callboard::acq_rel) != at)
                        check::give_up(__FILE__, __LINE__, "closed under its owner");
                }
                break;
            }
            random.pause();
        }
        taken.fetch_add(sum, callboard::relaxed);
    });
    std::int64_t served = 0;
    for (int i = 0; i < counts; ++i) served += all[i].served;
    CHECK_EQUAL(served, taken.load(callboard::relaxed));
    CHECK(newest.load(callboard::relaxed) > 0);
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

TEST("no request is lost where resources close, be it handed over or left") {
    for (const int threads : {2, 4}) every_request_is_served_though_resources_close(threads, 50000);
}

TEST("what is added to a count is served by one owner at a time, or refused because it is closed") {
    for (const int threads : {2, 4}) no_weight_is_lost_at_a_count_that_closes(threads, 100000);
}

TEST("an owner that sleeps is woken by what is handed over") {
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
