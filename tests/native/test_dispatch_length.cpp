// The number of messages that a dispatch handles: the quantum, unless messages are slow or flood in.
#include "callboard/scheduling/dispatch_length.hpp"

#include <vector>

#include "check.hpp"

using namespace callboard;

namespace {

// A worker's thread; what it sends to never gives a node back, unless it says so.
struct Bench {
    Worker worker;
    Context context;
    FreeList list;
    std::vector<Node*> sent;

    Bench() { context.worker = &worker; }
    ~Bench() { receive_all(); }

    void send(int count) {
        while (count-- > 0) sent.push_back(context.nodes.take(list));
    }

    void receive_all() {
        for (Node* node : sent) context.nodes.give(node, list);
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

TEST("after a flood a number of dispatches may be long, and no more after that") {
    Bench bench;
    bench.dispatch(100);
    int longer = 0;
    for (int i = 0; i < 1000; ++i) longer += bench.dispatch(0) > 8;
    CHECK(longer > 0);
    CHECK(longer <= 64);
    CHECK_EQUAL(bench.dispatch(0), 8u);
}

TEST("a worker with exact dispatches keeps their length in a flood") {
    Bench bench;
    bench.worker.exact = true;
    CHECK_EQUAL(bench.dispatch(100), 8u);
    CHECK_EQUAL(bench.dispatch(0), 8u);
}

namespace {

Outcome nothing(Cell*, Context*, std::uint32_t) { return Outcome::done; }

// The same with a time slice, and a cell whose check interval is tested. Its clock stands where the test says: a
// look takes `took_ns` for the time since the look before.
struct TimedBench : Bench {
    Cell cell{nothing, nullptr, 0};

    explicit TimedBench(std::int64_t time_slice_ns) {
        worker.time_slice_ns = time_slice_ns;
        context.current = &cell;
    }

    // A dispatch of an actor with endless work, before which the clock was looked at `ago` ns ago.
    std::uint32_t dispatch_after(std::int64_t ago, std::uint32_t quantum = 64) {
        worker.loop_time.store(coarse_ns() - ago, relaxed);
        worker.quantum = quantum;
        std::uint32_t limit = begin_dispatch(&cell, &context, quantum), handled = 0;
        while (handled < 1'000'000 && goes_on(&context, handled, limit)) ++handled;
        return handled;
    }
};

constexpr std::int64_t hour = 3'600'000'000'000;

}  // namespace

TEST("quick messages let the check interval grow, and a dispatch handle its quantum") {
    TimedBench bench(hour);
    CHECK_EQUAL(bench.cell.check_interval, 1u);
    CHECK_EQUAL(bench.dispatch_after(0), 64u);
    CHECK_EQUAL(bench.cell.check_interval, 8u);
    CHECK_EQUAL(bench.dispatch_after(0), 64u);
    CHECK_EQUAL(bench.dispatch_after(0, 5), 5u);
    CHECK_EQUAL(bench.cell.check_interval, 8u);
}

TEST("a dispatch whose time is over begins no more messages, and the next one looks after each") {
    TimedBench bench(hour);
    bench.cell.check_interval = 8;
    CHECK_EQUAL(bench.dispatch_after(2 * hour), 8u);
    CHECK_EQUAL(bench.cell.check_interval, 1u);
}

TEST("a dispatch of a slow cell knows when it began") {
    TimedBench bench(hour);
    CHECK_EQUAL(bench.dispatch_after(2 * hour), 64u);  // the time before it is not its own
    CHECK(bench.worker.loop_time.load(relaxed) > coarse_ns() - hour);
}

TEST("after a stretch of half a time slice the clock is read after each message") {
    TimedBench bench(hour);
    bench.cell.check_interval = 8;
    CHECK_EQUAL(bench.dispatch_after(hour / 4 * 3, 9), 9u);
    CHECK_EQUAL(bench.cell.check_interval, 1u);
}

TEST("a dispatch without a time slice is as long as its quantum, and reads no clock") {
    TimedBench bench(0);
    CHECK_EQUAL(bench.dispatch_after(2 * hour), 64u);
    CHECK_EQUAL(bench.dispatch_after(2 * hour), 64u);
    CHECK_EQUAL(bench.cell.check_interval, no_checks);
}

TEST("a flood of spare nodes does not end a dispatch at its check interval") {
    TimedBench bench(hour);
    bench.send(200);
    bench.receive_all();
    bench.cell.check_interval = 2;
    bench.worker.quantum = 64;
    bench.worker.loop_time.store(coarse_ns(), relaxed);
    std::uint32_t limit = begin_dispatch(&bench.cell, &bench.context, 64), handled = 0;
    while (handled < 1'000 && goes_on(&bench.context, handled, limit)) {
        if (handled < 2) bench.send(40);
        ++handled;
    }
    CHECK_EQUAL(handled, 64u);
}

CHECK_MAIN
