// Delegation to resources that end: by count, and by request.
#include "callboard/mailbox/closable.hpp"
#include "model.hpp"

using namespace callboard;
using model::Plain;
using model::together;

namespace {

struct Counter {
    ClosableCount claims;
    Plain<int> counted{0};
    Plain<int> closed_with{-1};

    // False: it was refused. Otherwise the weight is counted.
    bool add(int weight) {
        switch (claims.own_or_delegate(weight)) {
            case Handed::refused: return false;
            case Handed::delegated: return true;
            default: break;
        }
        for (std::int64_t due = weight; due != 0; due = claims.settle(due)) counted = counted + static_cast<int>(due);
        return true;
    }

    bool close() {
        if (!claims.try_close()) return false;
        closed_with = counted;
        return true;
    }
};

struct Request {
    Plain<Request*> next{nullptr};
    Plain<int> value{1};
};

struct Bucket {
    ClosableDelegation<Request> claims;
    Plain<int> served{0};
    Plain<int> ended{0};

    void serve_all(Request* request) {
        while (request != nullptr) {
            Request* const following = request->next;
            served = served + request->value;
            delete request;
            request = following;
        }
    }

    void let_go() {
        while (!claims.try_release()) serve_all(claims.take());
    }

    // The owner closes it if nobody wants anything.
    void end() {
        ended = 1;
        if (claims.try_close()) return;
        ended = 0;
        serve_all(claims.take());
        let_go();
    }

    // False: it was refused.
    bool ask() {
        auto* const request = new Request;
        switch (claims.own_or_delegate(request)) {
            case Handed::refused: delete request; return false;
            case Handed::delegated: return true;
            default: break;
        }
        request->next = nullptr;  // it may have been on its way to others
        serve_all(request);
        let_go();
        return true;
    }

    bool leave() {
        auto* const request = new Request;
        switch (claims.leave(request)) {
            case ClosableDelegation<Request>::Left::refused: delete request; return false;
            case ClosableDelegation<Request>::Left::more: return true;
            default: break;
        }
        serve_all(claims.own_left());
        let_go();
        return true;
    }
};

}  // namespace

MODEL("a count that is closed counts what came before, and refuses the rest") {
    Counter counter;
    Plain<int> first{0}, second{0};
    together([&] { first = counter.add(1); }, [&] { second = counter.add(2); }, [&] { counter.close(); });
    CHECK(counter.counted == first + 2 * second);
    CHECK(counter.closed_with == -1 || counter.closed_with == counter.counted);
}

MODEL("who is refused, or sees that a count is closed, sees what was done before") {
    Counter counter;
    Plain<int> before{0};
    together(
        [&] {
            before = 7;
            (void)counter.claims.try_close();
        },
        [&] {
            if (!counter.add(1)) CHECK(before == 7);
        },
        [&] {
            if (counter.claims.is_closed()) CHECK(before == 7);
        });
}

MODEL("what is added to a count is there when it is due") {
    Counter counter;
    counter.claims.open(1);  // and owned by the first
    Plain<int> brought{0};
    together(
        [&] {
            model::await([&] { return counter.claims.due() == 3; });
            CHECK(brought == 7);
            std::int64_t due = counter.claims.settle(3);
            CHECK(due == 0);
        },
        [&] {
            brought = 7;
            CHECK(counter.add(2));
        });
}

MODEL("a bucket that its owner closes serves what came before, and refuses the rest") {
    Bucket bucket;
    Plain<int> first{0}, second{0};
    together(
        [&] {
            if (bucket.claims.try_own()) bucket.end();
        },
        [&] { first = bucket.ask(); }, [&] { second = bucket.ask(); });
    CHECK(bucket.served == first + second);
}

MODEL("what is left at a bucket keeps it open, and is served") {
    Bucket bucket;
    Plain<int> first{0}, second{0};
    together(
        [&] {
            if (bucket.claims.try_own()) bucket.end();
        },
        [&] { first = bucket.leave(); }, [&] { second = bucket.leave(); });
    CHECK(bucket.served == first + second);
}

MODEL("what is left at a bucket meets its owner") {
    Bucket bucket;
    Plain<int> first{0}, second{0};
    together(
        [&] {
            if (bucket.claims.try_own()) bucket.end();
        },
        [&] { first = bucket.ask(); }, [&] { second = bucket.leave(); });
    CHECK(bucket.served == first + second);
}

MODEL("who sees that a bucket is closed sees what its owner did") {
    Bucket bucket;
    together(
        [&] {
            if (bucket.claims.try_own()) bucket.end();
        },
        [&] {
            if (bucket.claims.is_closed()) CHECK(bucket.ended == 1);
        });
}
