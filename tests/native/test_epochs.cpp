// When epochs go on, on one thread; stress_epochs.cpp has the contention.
#include "callboard/core/memory/epochs.hpp"

#include "callboard/frequency/designs/retired_nodes.hpp"
#include "check.hpp"

using callboard::Epochs;

namespace {

struct Thing {
    Thing* next = nullptr;
    Thing* link = nullptr;
    std::uint64_t retired = 0;
};

using Nodes = callboard::RetiredNodes<Thing>;

}  // namespace

TEST("what is retired can be used again when the epoch is three beyond") {
    Epochs epochs(2, 1);
    const std::uint64_t announced = epochs.enter(0);
    epochs.leave(0);
    for (int i = 0; i < 3; ++i) {
        CHECK(!epochs.has_passed(announced));
        CHECK(epochs.try_advance());
    }
    CHECK(epochs.has_passed(announced));
}

TEST("who stays inside lets the epoch go on once") {
    Epochs epochs(2, 1);
    const std::uint64_t announced = epochs.enter(0);
    CHECK(epochs.try_advance());
    CHECK(!epochs.try_advance());
    CHECK_EQUAL(epochs.enter(1), announced + 1);
    CHECK(!epochs.try_advance());
    epochs.leave(0);
    CHECK(epochs.try_advance());
    CHECK(!epochs.try_advance());
    epochs.leave(1);
    CHECK(epochs.try_advance());
}

TEST("a visitor holds the epoch up as a member does, and leaves its place to the next") {
    Epochs epochs(1, 2);
    for (int i = 0; i < 5; ++i) {
        const unsigned one = epochs.enter_as_visitor(), other = epochs.enter_as_visitor();
        CHECK(one != other);
        CHECK(epochs.try_advance());
        epochs.leave_as_visitor(one);
        CHECK(!epochs.try_advance());
        epochs.leave_as_visitor(other);
        CHECK(epochs.try_advance());
    }
}

TEST("what was retired comes back when its time has passed, and not before") {
    Epochs epochs(1, 0);
    Nodes nodes;
    Nodes::OfStream stock;
    nodes.fill(stock);
    CHECK_EQUAL(stock.free_count(), Nodes::batch);
    Thing* const thing = stock.take();
    const std::uint64_t announced = epochs.enter(0);
    stock.retire(thing, announced);
    epochs.leave(0);
    for (int i = 0; i < 3; ++i) {
        stock.reclaim(epochs);
        CHECK_EQUAL(stock.retired_count(), 1u);
        CHECK(epochs.try_advance());
    }
    stock.reclaim(epochs);
    CHECK_EQUAL(stock.retired_count(), 0u);
    CHECK(stock.take() == thing);
}

TEST("what one stream frees another one uses, and no more is made than the limit says") {
    Nodes nodes;
    Nodes::OfStream giver, taker;
    for (int i = 0; i < 4; ++i) {
        CHECK(nodes.fill(giver, 4 * Nodes::batch));
        if (i < 3)
            while (giver.free_count() != 0) taker.give(giver.take());
    }
    CHECK_EQUAL(nodes.made(), 4 * Nodes::batch);
    while (taker.free_count() != 0) giver.give(taker.take());
    CHECK(!nodes.fill(taker, 4 * Nodes::batch));
    nodes.spread(giver);
    CHECK(giver.free_count() < 3 * Nodes::batch);
    CHECK(nodes.fill(taker, 4 * Nodes::batch));
    CHECK_EQUAL(nodes.made(), 4 * Nodes::batch);
    while (taker.free_count() != 0) giver.give(taker.take());
    CHECK(nodes.fill(taker, 4 * Nodes::batch));  // the second batch was handed on, too
    CHECK_EQUAL(nodes.made(), 4 * Nodes::batch);
}

CHECK_MAIN
