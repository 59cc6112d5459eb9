// Members that exchange things and use them again when nobody can be reading them. What a thing says is plain memory:
// one that is written under a reader is a data race, and a reader that sees one change says so.
#include "callboard/core/memory/epochs.hpp"

#include "callboard/frequency/designs/retired_nodes.hpp"
#include "stress.hpp"

using namespace callboard;
using namespace stress;

namespace {

struct Thing {
    std::int64_t first = 0, second = 0;
    Thing* next = nullptr;
    Thing* link = nullptr;
    std::uint64_t retired = 0;
};

constexpr unsigned slots = 4;

void exchange_things(int members, int visitors, int turns) {
    Epochs epochs(static_cast<unsigned>(members), 1);  // visitors wait for each other
    RetiredNodes<Thing> nodes;
    Atomic<Thing*> shown[slots] = {};
    Atomic<int> at_work{members};
    Atomic<int> torn{0};
    const auto look = [&](Random& random) {
        const Thing* const thing = shown[random.below(slots)].load(acquire);
        if (thing == nullptr) return;
        const std::int64_t first = thing->first;
        random.pause();
        if (first != thing->second) torn.fetch_add(1, relaxed);
    };
    together(members + visitors, [&](int index) {
        Random random(static_cast<std::uint64_t>(index));
        if (index >= members) {
            while (at_work.load(acquire) != 0) {
                const unsigned place = epochs.enter_as_visitor();
                look(random);
                epochs.leave_as_visitor(place);
            }
            return;
        }
        const auto self = static_cast<unsigned>(index);
        RetiredNodes<Thing>::OfStream stock;
        for (int turn = 0; turn < turns; ++turn) {
            const std::uint64_t announced = epochs.enter(self);
            nodes.fill(stock);
            for (auto left = random.below(8); left != 0; --left) {
                look(random);
                Thing* const fresh = stock.take();
                fresh->first = fresh->second = stamp(index, turn);
                Thing* const old = shown[random.below(slots)].exchange(fresh, acq_rel);
                if (old != nullptr) stock.retire(old, announced);
            }
            epochs.leave(self);
            epochs.try_advance();
            stock.reclaim(epochs);
            nodes.spread(stock);
        }
        while (stock.retired_count() != 0) {
            epochs.try_advance();
            stock.reclaim(epochs);
            std::this_thread::yield();
        }
        at_work.fetch_sub(1, release);
    });
    CHECK_EQUAL(torn.load(relaxed), 0);
}

}  // namespace

TEST("nothing is used again under a reader") {
    exchange_things(2, 1, 20000);
    exchange_things(4, 2, 10000);
}

CHECK_MAIN
