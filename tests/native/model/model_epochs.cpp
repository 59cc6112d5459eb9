// Epochs: a thing that was unlinked ends when nobody holds it any more.
#include "callboard/core/memory/epochs.hpp"
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

// The epoch goes on by one who does not hold anything: so it may be two beyond the unlinker's when another enters.
MODEL("a thing does not end while a member of the next epoch holds it, whoever moves the epoch on") {
    Epochs epochs(2, 0);
    Linked linked;
    Plain<Plain<int>*> left{nullptr};
    together(
        [&] {
            const std::uint64_t mine = epochs.enter(0);
            Plain<int>* const thing = linked.thing.exchange(nullptr, acq_rel);
            epochs.leave(0);
            (void)epochs.try_advance();
            if (epochs.has_passed(mine)) delete thing;
            else left = thing;
        },
        [&] {
            epochs.enter(1);
            linked.look();
            epochs.leave(1);
        },
        [&] {
            for (int i = 0; i < 3; ++i) (void)epochs.try_advance();
        });
    delete left.get();
}
