// Epochs: a thing that was unlinked ends when nobody holds it any more.
#include "callboard/core/epochs.hpp"
#include "model.hpp"

using namespace callboard;
using model::Plain;
using model::together;

namespace {

struct Linked {
    Atomic<Plain<int>*> thing{new Plain<int>(7)};

    void look() {
        if (Plain<int>* const found = thing.load(acquire)) CHECK(*found == 7);
    }
};

}  // namespace

MODEL("who unlinks a thing ends it when all who may hold it have left") {
    Epochs epochs(2, 0);
    Linked linked;
    together(
        [&] {
            const std::uint64_t mine = epochs.enter(0);
            Plain<int>* const thing = linked.thing.exchange(nullptr, acq_rel);
            epochs.leave(0);
            while (!epochs.has_passed(mine)) {
                model::begin_attempt();
                if (!epochs.try_advance()) model::end_attempt();
            }
            delete thing;
        },
        [&] {
            epochs.enter(1);
            linked.look();
            epochs.leave(1);
        });
}

MODEL("a member that comes again holds nothing of its last time") {
    Epochs epochs(2, 0);
    Linked linked;
    together(
        [&] {
            const std::uint64_t mine = epochs.enter(0);
            Plain<int>* const thing = linked.thing.exchange(nullptr, acq_rel);
            epochs.leave(0);
            for (int i = 0; i < 3; ++i) (void)epochs.try_advance();
            if (epochs.has_passed(mine)) delete thing;
            else linked.thing.store(thing, relaxed);
        },
        [&] {
            for (int i = 0; i < 2; ++i) {
                epochs.enter(1);
                linked.look();
                epochs.leave(1);
            }
        });
    delete linked.thing.load(relaxed);
}

MODEL_MAIN
