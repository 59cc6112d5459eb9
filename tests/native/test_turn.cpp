// How many messages a dispatch handles: the quantum, and something else in a flood.
#include "callboard/scheduling/turn.hpp"

#include <vector>

#include "check.hpp"

using namespace callboard;

namespace {

// A worker's thread; what it sends to never gives a node back, unless it says so.
struct Bench {
    Worker worker;
    Context context;
    FreePool pool;
    std::vector<Node*> sent;

    Bench() { context.worker = &worker; }
    ~Bench() { receive_all(); }

    void send(int count) {
        while (count-- > 0) sent.push_back(context.nodes.take(pool));
    }

    void receive_all() {
        for (Node* node : sent) context.nodes.give(node, pool);
        sent.clear();
        context.nodes.clear_needs(false);
    }

    // A dispatch of an actor with endless work, that sends `sends` messages for each it handles.
    std::uint32_t dispatch(int sends, std::uint32_t quantum = 8) {
        std::uint32_t limit = worker.quantum = quantum, handled = 0;
        while (handled < 1'000'000 && goes_on(&context, handled, limit)) {
            send(sends);
            ++handled;
        }
        return handled;
    }
};

}  // namespace

TEST("a dispatch in balance handles its quantum") {
    Bench bench;
    CHECK_EQUAL(bench.dispatch(0), 8u);
    CHECK_EQUAL(bench.dispatch(1), 8u);  // few new nodes are no flood
    CHECK_EQUAL(bench.dispatch(0), 8u);
}

TEST("a dispatch that finds spare nodes handles its quantum, whatever it sends") {
    Bench bench;
    bench.send(200);
    bench.receive_all();
    CHECK_EQUAL(bench.dispatch(20), 8u);
}

TEST("a dispatch handles one message at least, whatever was sent before it") {
    Bench bench;
    bench.send(200);
    CHECK(bench.dispatch(0) > 0);
}

TEST("a dispatch that floods ends with the message in work") {
    Bench bench;
    CHECK_EQUAL(bench.dispatch(32), 2u);
    CHECK_EQUAL(bench.dispatch(1000), 1u);
}

TEST("after a flood so many dispatches may be long, and then none") {
    Bench bench;
    bench.dispatch(100);
    int longer = 0;
    for (int i = 0; i < 1000; ++i) longer += bench.dispatch(0) > 8;
    CHECK(longer > 0);
    CHECK(longer <= 64);
    CHECK_EQUAL(bench.dispatch(0), 8u);
}

TEST("a worker whose turns are exact keeps them in a flood") {
    Bench bench;
    bench.worker.exact = true;
    CHECK_EQUAL(bench.dispatch(100), 8u);
    CHECK_EQUAL(bench.dispatch(0), 8u);
}

CHECK_MAIN
