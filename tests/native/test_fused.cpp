// Several operators as one stage; stress_flow.cpp has fused stages among others, under threads.
#include <string>
#include <utility>
#include <vector>

#include "callboard/scheduling/flow/flow.hpp"
#include "check.hpp"

using namespace callboard;

namespace {

// An operator that adds its name to what comes, and the names of several inputs together.
struct Op {
    std::string name;
    std::uint32_t inputs, edges;
    int calls = 0;
    std::vector<std::string> got{};  // of a sink

    explicit Op(std::string name = "", std::uint32_t inputs = 1, std::uint32_t edges = 1)
        : name(std::move(name)), inputs(inputs), edges(edges) {}

    static void* process(void* self, std::int64_t, void** inputs, RowTotals& counts) {
        Op& op = *static_cast<Op*>(self);
        ++op.calls;
        auto* out = new std::string;
        for (std::uint32_t i = 0; i < op.inputs; ++i) {
            auto* in = static_cast<std::string*>(inputs[i]);
            if (in == nullptr) continue;
            ++counts.taken;
            *out += *in;
            delete in;
        }
        ++counts.given;
        *out += op.name;
        return out;
    }
    static void* pick(void* self, void* output, std::uint32_t edge) {
        const bool last = edge + 1 == static_cast<Op*>(self)->edges;
        return last ? output : new std::string(*static_cast<std::string*>(output));
    }

    Work work() { return {this, process, pick, discard, nullptr, nullptr}; }
    static void discard(void* self, void* output) {
        auto* text = static_cast<std::string*>(output);
        static_cast<Op*>(self)->got.push_back(*text);
        delete text;
    }
};

Flow::Settings settings() {
    Flow::Settings settings;
    settings.window = 4;
    return settings;
}

void admit(Flow& flow, const char* text) {
    void* batch = text == nullptr ? nullptr : new std::string(text);
    flow.admit(&batch);
}

}  // namespace

TEST("members are called one after the other, in the order of the graph") {
    Op a{"a", 1, 2}, b{"b"}, c{"c"}, both{"+", 2, 0};
    Flow flow(settings());
    FusedStage& fused = flow.add_fused(flow.add_pool(nullptr), all_lanes);
    for (Op* op : {&a, &b, &c, &both}) fused.add_member(op->work(), op->inputs);
    flow.add_entry(fused, fused.open(0, 0));
    fused.connect_within(0, 1, 0);
    fused.connect_within(0, 2, 0);
    fused.connect_within(1, 3, 0);
    fused.connect_within(2, 3, 1);
    fused.finish();
    flow.finish_graph();
    admit(flow, "1");
    admit(flow, "2");
    fused.work_through();
    CHECK_EQUAL(flow.done(), 2);
    CHECK_EQUAL(both.got.size(), 2u);
    CHECK_EQUAL(both.got[0], "1ab1ac+");
    CHECK_EQUAL(both.got[1], "2ab2ac+");
    CHECK_EQUAL(fused.figures_of(3).taken(), 4u);
    CHECK_EQUAL(fused.figures_of(3).given(), 2u);
}

TEST("a round passes ten thousand members without recursion") {
    const std::uint32_t depth = 10'000;
    std::vector<Op> ops(depth);
    ops.back().edges = 0;
    Flow flow(settings());
    FusedStage& fused = flow.add_fused(flow.add_pool(nullptr), all_lanes);
    for (auto& op : ops) fused.add_member(op.work(), 1);
    flow.add_entry(fused, fused.open(0, 0));
    for (std::uint32_t i = 0; i + 1 < depth; ++i) fused.connect_within(i, i + 1, 0);
    fused.finish();
    flow.finish_graph();
    for (int i = 0; i < 3; ++i) {
        admit(flow, "x");
        fused.work_through();
    }
    CHECK_EQUAL(flow.done(), 3);
    CHECK_EQUAL(ops.back().calls, 3);
}

TEST("an empty round passes on the thread that puts it, and wakes no lane") {
    Op a{"a"}, b{"b", 1, 0};
    Flow flow(settings());
    FusedStage& fused = flow.add_fused(flow.add_pool(nullptr), all_lanes);
    fused.add_member(a.work(), 1);
    fused.add_member(b.work(), 1);
    flow.add_entry(fused, fused.open(0, 0));
    fused.connect_within(0, 1, 0);
    fused.finish();
    flow.finish_graph();
    admit(flow, nullptr);
    CHECK_EQUAL(flow.done(), 1);
    CHECK_EQUAL(a.calls + b.calls, 0);
}

TEST("a member that listens is called though nothing comes, by the lane alone") {
    Op a{"a"}, b{"b", 2, 0};
    Flow flow(settings());
    FusedStage& fused = flow.add_fused(flow.add_pool(nullptr), all_lanes);
    fused.add_member(a.work(), 1);
    fused.add_member(b.work(), 2, true);
    flow.add_entry(fused, fused.open(0, 0));
    fused.connect_within(0, 1, 0);
    fused.connect_within(0, 1, 1);
    fused.finish();
    flow.finish_graph();
    admit(flow, nullptr);
    CHECK_EQUAL(flow.done(), 0);
    fused.work_through();
    CHECK_EQUAL(flow.done(), 1);
    CHECK_EQUAL(a.calls, 0);
    CHECK_EQUAL(b.calls, 1);
}

TEST("output goes to another stage, which may lead back to a later stage of the same pool") {
    Op a{"a", 1, 2}, out{"o"}, back{"b", 2, 0};
    Flow flow(settings());
    Pool& pool = flow.add_pool(nullptr);
    Pool& other = flow.add_pool(nullptr);
    FusedStage& first = flow.add_fused(pool, all_lanes);
    first.add_member(a.work(), 1);
    Stage& between = flow.add_ordered(other, out.work(), all_lanes, 1);
    FusedStage& second = flow.add_fused(pool, all_lanes);
    second.add_member(back.work(), 2);
    flow.add_entry(first, first.open(0, 0));
    first.connect_out(0, between, 0);
    first.connect_out(0, second, second.open(0, 0));
    flow.connect(between, second, second.open(0, 1));
    first.finish();
    second.finish();
    flow.finish_graph();
    admit(flow, "1");
    while (pool.step(all_lanes)) {}
    CHECK_EQUAL(flow.done(), 0);
    while (other.step(all_lanes)) {}
    CHECK_EQUAL(flow.done(), 0);
    while (pool.step(all_lanes)) {}
    CHECK_EQUAL(flow.done(), 1);
    CHECK_EQUAL(back.got[0], "1a1aob");
}

TEST("a stage with sinks and with edges out leaves each round once") {
    Op a{"a", 1, 2}, sink{"s", 1, 0}, after{"t", 1, 0};
    Flow flow(settings());
    Pool& pool = flow.add_pool(nullptr);
    FusedStage& fused = flow.add_fused(pool, all_lanes);
    fused.add_member(a.work(), 1);
    fused.add_member(sink.work(), 1);
    Stage& last = flow.add_ordered(pool, after.work(), all_lanes, 1);
    flow.add_entry(fused, fused.open(0, 0));
    fused.connect_within(0, 1, 0);
    fused.connect_out(0, last, 0);
    fused.finish();
    flow.finish_graph();
    for (const char* text : {"1", "2", "3"}) admit(flow, text);
    while (pool.step(all_lanes)) {}
    CHECK_EQUAL(flow.done(), 3);
    CHECK_EQUAL(sink.got.size(), 3u);
    CHECK_EQUAL(after.got.size(), 3u);
}

CHECK_MAIN
