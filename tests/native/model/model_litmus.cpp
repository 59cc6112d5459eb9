// The checker itself: small programs whose outcomes are known, and how many executions lead to them.
//
// The outcomes are those of C++, without load buffering. The names are those of the field.
#include "model.hpp"

using namespace callboard;
using model::Plain;
using model::came_to;
using model::together;

namespace {

struct Shared {
    Atomic<int> x{0}, y{0};
    int a = -1, b = -1, c = -1, d = -1;
};

void store_buffering(std::memory_order order) {
    Shared at;
    together([&] { at.x.store(1, order), at.a = at.y.load(order); },
             [&] { at.y.store(1, order), at.b = at.x.load(order); });
    came_to({at.a, at.b});
}

void message_passing(std::memory_order stored, std::memory_order loaded) {
    Shared at;
    together([&] { at.x.store(1, relaxed), at.y.store(1, stored); },
             [&] { at.a = at.y.load(loaded), at.b = at.x.load(relaxed); });
    came_to({at.a, at.b});
}

// Two readers may see two writes in two orders.
void independent_reads(std::memory_order order) {
    Shared at;
    together([&] { at.x.store(1, order); }, [&] { at.y.store(1, order); },
             [&] { at.a = at.x.load(order), at.b = at.y.load(order); },
             [&] { at.c = at.y.load(order), at.d = at.x.load(order); });
    if (at.a == 1 && at.c == 1) came_to({at.b, at.d});
}

}  // namespace

MODEL("store buffering, relaxed", "00 01 10 11", 4) { store_buffering(relaxed); }
MODEL("store buffering, released and acquired: both may still miss the other", "00 01 10 11", 4) {
    store_buffering(acq_rel);
}
MODEL("store buffering, seq_cst: one of them sees the other", "01 10 11", 3) { store_buffering(seq_cst); }

MODEL("store buffering by a barrier for all: the others need only hold the compiler back", "01 10 11", 3) {
    Shared at;
    together(
        [&] {
            at.x.store(1, relaxed);
            compiler_barrier();
            at.a = at.y.load(relaxed);
        },
        [&] {
            at.y.store(1, relaxed);
            model::fence(model::Kind::heavy_fence, {"membarrier", 0});
            at.b = at.x.load(relaxed);
        });
    came_to({at.a, at.b});
}

MODEL("compiler barriers alone order nothing between cores", "00 01 10 11", 4) {
    Shared at;
    together([&] { at.x.store(1, relaxed), compiler_barrier(), at.a = at.y.load(relaxed); },
             [&] { at.y.store(1, relaxed), compiler_barrier(), at.b = at.x.load(relaxed); });
    came_to({at.a, at.b});
}

MODEL("message passing, relaxed: the message may be missed", "00 01 10 11", 4) { message_passing(relaxed, relaxed); }
MODEL("message passing, released: so it may without an acquire", "00 01 10 11", 4) {
    message_passing(release, relaxed);
}
MODEL("message passing, acquired: so it may without a release", "00 01 10 11", 4) { message_passing(relaxed, acquire); }
MODEL("message passing, released and acquired: it is seen", "00 01 11", 3) { message_passing(release, acquire); }

// Allowed by C++, and by no processor that is known for code that compilers make of this: here left out.
MODEL("load buffering: no value comes from the future", "00 01 10", 3) {
    Shared at;
    together([&] { at.a = at.x.load(relaxed), at.y.store(1, relaxed); },
             [&] { at.b = at.y.load(relaxed), at.x.store(1, relaxed); });
    came_to({at.a, at.b});
}

MODEL("independent reads of independent writes, acquired: two orders", "00 01 10 11", 16) {
    independent_reads(acq_rel);
}
MODEL("independent reads of independent writes, seq_cst: one order", "01 10 11", 15) { independent_reads(seq_cst); }

MODEL("coherence: two reads of one location do not go back", "00 01 02 11 12 22", 6) {
    Shared at;
    together([&] { at.x.store(1, relaxed), at.x.store(2, relaxed); },
             [&] { at.a = at.x.load(relaxed), at.b = at.x.load(relaxed); });
    came_to({at.a, at.b});
}

MODEL("coherence: two readers see two writes in one order", "1212 2121") {
    Shared at;
    together([&] { at.x.store(1, relaxed); }, [&] { at.x.store(2, relaxed); },
             [&] { at.a = at.x.load(relaxed), at.b = at.x.load(relaxed); },
             [&] { at.c = at.x.load(relaxed), at.d = at.x.load(relaxed); });
    if (at.a != 0 && at.b != 0 && at.a != at.b && at.c != 0 && at.d != 0 && at.c != at.d)
        came_to({at.a, at.b, at.c, at.d});
}

MODEL("coherence: a thread reads its own write, or a newer one", "1 2", 3) {
    Shared at;
    together([&] { at.x.store(1, relaxed), at.a = at.x.load(relaxed); }, [&] { at.x.store(2, relaxed); });
    came_to({at.a});
}

MODEL("coherence: a read value is older than a later write", "01 21", 4) {
    Shared at;
    together([&] { at.a = at.x.load(relaxed), at.x.store(1, relaxed), at.b = at.x.load(relaxed); },
             [&] { at.x.store(2, relaxed); });
    if (at.b == 1) came_to({at.a, at.b});
}

MODEL("two writes each: the orders of two locations may disagree", "11 12 21 22", 4) {
    Shared at;
    together([&] { at.x.store(1, relaxed), at.y.store(2, relaxed); },
             [&] { at.y.store(1, relaxed), at.x.store(2, relaxed); });
    came_to({at.x.load(relaxed), at.y.load(relaxed)});
}

MODEL("updates: each reads the last one, and none is lost", "012 021 102 120 201 210", 6) {
    Shared at;
    together([&] { at.a = at.x.fetch_add(1, relaxed); }, [&] { at.b = at.x.fetch_add(1, relaxed); },
             [&] { at.c = at.x.fetch_add(1, relaxed); });
    CHECK(at.x.load(relaxed) == 3);
    came_to({at.a, at.b, at.c});
}

MODEL("updates: of two that compare, one swaps", "01 10", 2) {
    Shared at;
    const auto swap = [&at] {
        int expected = 0;
        return at.x.compare_exchange_strong(expected, 1, relaxed, relaxed);
    };
    together([&] { at.a = swap(); }, [&] { at.b = swap(); });
    came_to({at.a, at.b});
}

MODEL("updates: a store comes before one, or after it", "1 3", 2) {
    Shared at;
    together([&] { at.x.store(1, relaxed); }, [&] { at.x.fetch_add(2, relaxed); });
    came_to({at.x.load(relaxed)});
}

MODEL("a release sequence goes on through another thread's update", "7", 1) {
    Shared at;
    Plain<int> message{0};
    together([&] { message = 7, at.x.store(1, release); },
             [&] {
                 model::await([&] { return at.x.load(relaxed) == 1; });
                 at.x.fetch_add(1, relaxed);
             },
             [&] {
                 model::await([&] { return at.x.load(acquire) == 2; });
                 at.a = message;
             });
    came_to({at.a});
}

MODEL("a release sequence ends with a store", "0 7") {
    Shared at;
    together([&] { at.y.store(7, relaxed), at.x.store(1, release), at.x.store(2, relaxed); },
             [&] {
                 model::await([&] { return at.x.load(acquire) == 2; });
                 at.a = at.y.load(relaxed);
             });
    came_to({at.a});
}

MODEL("happens-before goes on from thread to thread", "7", 1) {
    Shared at;
    Plain<int> message{0};
    together([&] { message = 7, at.x.store(1, release); },
             [&] {
                 model::await([&] { return at.x.load(acquire) == 1; });
                 at.y.store(1, release);
             },
             [&] {
                 model::await([&] { return at.y.load(acquire) == 1; });
                 at.a = message;
             });
    came_to({at.a});
}
