// The biased lock, where the kernel has a barrier for all cores and where it has none.
#include "callboard/core/threads/biased_lock.hpp"
#include "model.hpp"

using namespace callboard;
using model::Plain;
using model::together;

namespace {

struct Guarded {
    BiasedLock lock;
    Plain<int> owned{0}, visited{0};  // both are read and written under the lock

    explicit Guarded(bool prepared) {
        if (prepared) lock.prepare();
    }

    void own() {
        lock.lock();
        CHECK(visited <= 2);
        ++owned;
        lock.unlock();
    }

    void visit() {
        if (!lock.try_visit()) return;
        CHECK(owned <= 2);
        ++visited;
        lock.leave();
    }
};

void owner_and_visitor(bool prepared) {
    Guarded guarded(prepared);
    together([&] { guarded.own(), guarded.own(); }, [&] { guarded.visit(); });
    CHECK(guarded.owned == 2);
}

void visitor_twice(bool prepared) {
    Guarded guarded(prepared);
    together([&] { guarded.own(), guarded.own(); }, [&] { guarded.visit(), guarded.visit(); });
    CHECK(guarded.owned == 2);
}

void two_visitors(bool prepared) {
    Guarded guarded(prepared);
    together([&] { guarded.own(), guarded.own(); }, [&] { guarded.visit(); }, [&] { guarded.visit(); });
    CHECK(guarded.owned == 2);
}

}  // namespace

MODEL("an owner that locks twice, and a visitor") { owner_and_visitor(true); }
MODEL("an owner that locks twice, and a visitor that comes twice") { visitor_twice(true); }
MODEL("an owner that locks twice, and two visitors") { two_visitors(true); }
MODEL("without a barrier for all: an owner that locks twice, and a visitor") { owner_and_visitor(false); }
MODEL("without a barrier for all: an owner that locks twice, and a visitor that comes twice") { visitor_twice(false); }
MODEL("without a barrier for all: an owner that locks twice, and two visitors") { two_visitors(false); }
