// Operators that need no order as the work of one stage; stress_flow.cpp has chains among others, under threads.
#include <vector>

#include "callboard/scheduling/flow/flow.hpp"
#include "check.hpp"

using namespace callboard;

namespace {

// An operator on batches of one number: adds, and lets odd results go if it is told to.
struct Op {
    int adds, edges = 1;
    bool only_even = false;
    int calls = 0;
    std::vector<int> got{};  // of a sink

    static void* process(void* self, std::int64_t, void** inputs, RowTotals& counts) {
        Op& op = *static_cast<Op*>(self);
        auto* number = static_cast<int*>(inputs[0]);
        ++op.calls;
        ++counts.taken;
        *number += op.adds;
        if (op.only_even && *number % 2 != 0) return delete number, nullptr;
        ++counts.given;
        return number;
    }
    static void* pick(void* self, void* output, std::uint32_t edge) {
        const bool last = static_cast<int>(edge) + 1 == static_cast<Op*>(self)->edges;
        return last ? output : new int(*static_cast<int*>(output));
    }
    static void discard(void* self, void* output) {
        auto* number = static_cast<int*>(output);
        static_cast<Op*>(self)->got.push_back(*number);
        delete number;
    }
    Work work(bool picks = false) { return {this, process, picks ? pick : nullptr, discard, nullptr, nullptr}; }
};

void admit(Flow& flow, int number) {
    void* batch = new int(number);
    flow.admit(&batch);
}

}  // namespace

TEST("a round passes all members, until nothing is left of it") {
    for (bool shared : {false, true}) {
        Op add{1}, filter{0, 1, true}, ten{10, 0};
        Flow flow{{}};
        Pool& pool = flow.add_pool(nullptr);
        Chain& chain = flow.make_chain(shared ? 2 : 1);
        Stage& stage = shared ? flow.add_shared(pool, chain.work(), all_lanes, 2)
                              : flow.add_ordered(pool, chain.work(), all_lanes, 1);
        for (Op* op : {&add, &filter, &ten}) chain.add_member(op->work());
        flow.add_entry(stage, 0);
        flow.finish_graph();
        void* empty = nullptr;
        flow.admit(&empty);
        for (int i = 0; i < 4; ++i) admit(flow, i);
        while (pool.step(all_lanes)) {}
        CHECK_EQUAL(flow.done(), 5);
        CHECK((ten.got == std::vector<int>{12, 14}));
        CHECK_EQUAL(add.calls, 4);
        CHECK_EQUAL(ten.calls, 2);
        CHECK_EQUAL(chain.figures_of(1).taken(), 4u);
        CHECK_EQUAL(chain.figures_of(1).given(), 2u);
        CHECK_EQUAL(chain.figures_of(2).taken(), 2u);
        CHECK(chain.figures_of(0).cost_ns() > 0);  // of the first round with rows
        CHECK_EQUAL(stage.taken(), 4u);
        CHECK_EQUAL(stage.given(), 2u);
    }
}

TEST("the last one's output goes to all of its readers") {
    Op add{1}, twice{0, 2}, left{0, 0}, right{5, 0};
    Flow flow{{}};
    Pool& pool = flow.add_pool(nullptr);
    Chain& chain = flow.make_chain(2);
    Stage& stage = flow.add_shared(pool, chain.work(), all_lanes, 2);
    chain.add_member(add.work());
    chain.add_member(twice.work(true));
    for (Op* op : {&left, &right}) flow.connect(stage, flow.add_ordered(pool, op->work(), all_lanes, 1), 0);
    flow.add_entry(stage, 0);
    flow.finish_graph();
    for (int i = 0; i < 3; ++i) admit(flow, i);
    while (pool.step(all_lanes)) {}
    CHECK_EQUAL(flow.done(), 3);
    CHECK((left.got == std::vector<int>{1, 2, 3}));
    CHECK((right.got == std::vector<int>{6, 7, 8}));
}

CHECK_MAIN
