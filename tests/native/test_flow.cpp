// Who works on a flow, and who is woken; stress_flow.cpp has the threads.
#include "callboard/scheduling/flow/flow.hpp"
#include "check.hpp"

using namespace callboard;

namespace {

// One ordered stage, whose operator calls a function, and one lane, which counts how often it is woken.
struct OneStage {
    Flow flow{{}};
    Pool& pool = flow.add_pool(std::make_unique<ChooseLatest>());
    int woken = 0;
    void (*during)(OneStage&) = nullptr;

    Work work() {
        Work work;
        work.self = this;
        work.process = [](void* self, std::int64_t, void**, RowCounts& counts) -> void* {
            auto& one = *static_cast<OneStage*>(self);
            ++counts.taken;
            if (one.during != nullptr) one.during(one);
            return nullptr;
        };
        return work;
    }

    OneStage() {
        flow.add_entry(flow.add_ordered(pool, work(), all_lanes, 1), 0);
        flow.finish_graph();
        pool.add_lane(all_lanes, [](void* lane) { ++static_cast<OneStage*>(lane)->woken; }, this);
    }

    void admit(int rounds) {
        void* batch = this;
        for (int i = 0; i < rounds; ++i) flow.admit(&batch);
    }
};

}  // namespace

TEST("a lane is woken by the first round, and works until nothing is left") {
    OneStage one;
    one.admit(3);
    CHECK_EQUAL(one.woken, 1);
    CHECK_EQUAL(one.pool.run(0).reason, Pool::Rest::idle);
    CHECK_EQUAL(one.flow.done(), 3);
}

TEST("a helper that leaves rounds behind wakes the lane that found it at work") {
    OneStage one;
    one.admit(3);
    one.during = [](OneStage& one) {
        one.during = nullptr;
        CHECK_EQUAL(one.pool.run(0).reason, Pool::Rest::idle);  // the stage is taken
    };
    CHECK(one.pool.help(all_lanes));
    CHECK_EQUAL(one.flow.done(), 1);
    CHECK_EQUAL(one.woken, 2);
}

TEST("a round that comes while the awake lane is at work on a long one wakes another lane") {
    OneStage one, other;  // `other` lends its work only
    Flow flow{{}};
    Pool& pool = flow.add_pool(nullptr);
    for (OneStage* each : {&one, &other}) flow.add_entry(flow.add_ordered(pool, each->work(), all_lanes, 1), 0);
    flow.finish_graph();
    int woken[2] = {0, 0};
    for (int& count : woken) pool.add_lane(all_lanes, [](void* lane) { ++*static_cast<int*>(lane); }, &count);

    static Flow* running;  // what `during` has no other way to know
    running = &flow;
    void* batches[2] = {&one, nullptr};
    flow.admit(batches);
    CHECK_EQUAL(woken[0] + woken[1], 1);
    one.during = [](OneStage& one) {
        one.during = nullptr;
        void* batches[2] = {nullptr, running};
        running->admit(batches);
    };
    CHECK_EQUAL(pool.run(0).reason, Pool::Rest::idle);
    CHECK_EQUAL(woken[0], 1);
    CHECK_EQUAL(woken[1], 1);
}

TEST("a round is estimated by its rows, though a lane takes several at once") {
    OneStage one;
    Flow flow{{}};
    Pool& pool = flow.add_pool(nullptr);
    Stage& stage = flow.add_shared(pool, one.work(), all_lanes, 2);
    flow.add_entry(stage, 0);
    flow.finish_graph();
    void* batch = &one;
    for (int i = 0; i < 64; ++i) flow.admit(&batch);
    while (pool.step(all_lanes)) {}
    CHECK_EQUAL(flow.done(), 64);
    CHECK_EQUAL(stage.rows_per_unit(), 1.0);
}

CHECK_MAIN
