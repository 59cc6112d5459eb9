// Delegation: requests that are handed over, an owner that sleeps, and requests that are only counted.
#include "callboard/mailbox/delegation.hpp"
#include "model.hpp"

using namespace callboard;
using model::Plain;
using model::together;

namespace {

struct Request {
    Plain<Request*> next{nullptr};
    Plain<int> value;
    explicit Request(int value) : value(value) {}
};

struct Resource {
    Delegation<Request> claims;
    Plain<int> served{0};
    Plain<int> last{0};

    void serve(Request* request) {
        ++served;
        last = request->value;
        delete request;
    }

    // Requests are linked by their newest first, and served by their oldest.
    void serve_all(Request* request) {
        while (request != nullptr) {
            Request* const following = request->next;
            serve(request);
            request = following;
        }
    }

    void ask(int value) {
        auto* const request = new Request(value);
        if (!claims.own_or_delegate(request)) return;
        serve(request);
        while (!claims.try_release()) serve_all(claims.take());
    }
};

}  // namespace

MODEL("three threads, a request each: each is served once, by one thread at a time") {
    Resource resource;
    together([&] { resource.ask(1); }, [&] { resource.ask(2); }, [&] { resource.ask(3); });
    CHECK(resource.served == 3);
}

MODEL("two threads, two requests each: each is served once, in each thread's order") {
    Resource resource;
    together([&] { resource.ask(1), resource.ask(2); }, [&] { resource.ask(1), resource.ask(2); });
    CHECK(resource.served == 4);
    CHECK(resource.last == 2);
}

MODEL("two threads with two requests and one with one: each is served once") {
    Resource resource;
    together([&] { resource.ask(1), resource.ask(2); }, [&] { resource.ask(1), resource.ask(2); },
             [&] { resource.ask(3); });
    CHECK(resource.served == 5);
}

MODEL("a thread that owns by trying takes the requests of others") {
    Resource resource;
    together(
        [&] {
            if (!resource.claims.try_own()) return;
            ++resource.served;
            while (!resource.claims.try_release()) resource.serve_all(resource.claims.take());
            // It was here, or there was an owner.
        },
        [&] { resource.ask(1); },
        [&] {
            auto* const request = new Request(2);
            if (!resource.claims.delegate_if_owned(request)) delete request;
        });
    CHECK(resource.served >= 1);
    CHECK(resource.claims.try_own());
}

MODEL("a thread that finds no request because the owner took it sees all that the owner did before") {
    Resource resource;
    Plain<int> done{0};
    together(
        [&] {
            CHECK(resource.claims.try_own());
            done = 7;
            if (Request* const request = resource.claims.take()) {
                resource.serve(request);
            } else {
                while (!resource.claims.try_release()) resource.serve_all(resource.claims.take());
            }
        },
        [&] {
            auto* const request = new Request(1);
            if (!resource.claims.delegate_if_owned(request)) {
                delete request;
                return;
            }
            model::await([&] { return !resource.claims.has_pending(); });
            CHECK(done == 7);
        });
}

MODEL("a request wakes an owner that sleeps in the middle of its work") {
    model::Kernel kernel;
    Parker parker;
    Resource resource;
    CHECK(resource.claims.try_own());
    const auto delegate = [&resource](int value) {
        if (!resource.claims.delegate_if_owned(new Request(value))) CHECK(!"there is an owner");
    };
    together(
        [&] {
            while (resource.served != 2) {
                if (resource.claims.try_sleep(parker)) {
                    CHECK(parker.park());
                    resource.claims.stay_awake();
                }
                resource.serve_all(resource.claims.take());
            }
            CHECK(resource.claims.try_release());
        },
        [&] { delegate(1); }, [&] { delegate(2); });
    CHECK(resource.served == 2);
}

namespace {

struct Counted {
    CountedDelegation claims;
    Plain<int> served{0};

    void ask() {
        if (!claims.own_or_delegate()) return;
        for (std::int64_t due = 1; due != 0; due = claims.settle(due)) served = served + static_cast<int>(due);
    }
};

}  // namespace

MODEL("counted: three threads, a request each, are served by one thread at a time") {
    Counted counted;
    together([&] { counted.ask(); }, [&] { counted.ask(); }, [&] { counted.ask(); });
    CHECK(counted.served == 3);
}

MODEL("counted: a request's contents are there when it is due") {
    Counted counted;
    Atomic<int> brought{0};
    const auto ask = [&] {
        brought.fetch_add(1, relaxed);
        if (!counted.claims.own_or_delegate()) return;
        for (std::int64_t due = 1; due != 0; due = counted.claims.settle(due)) {
            counted.served = counted.served + static_cast<int>(due);
            CHECK(brought.load(relaxed) >= counted.served);
        }
    };
    together(ask, ask);
    CHECK(counted.served == 2);
}

MODEL("counted: a thread that owns by trying sees all that the last owner did") {
    Counted counted;
    together([&] { counted.ask(); },
             [&] {
                 if (!counted.claims.try_own()) return;
                 for (std::int64_t due = 1; due != 0; due = counted.claims.settle(due))
                     counted.served = counted.served + static_cast<int>(due);
             });
    CHECK(counted.served >= 1);
}
