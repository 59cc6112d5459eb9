// oneTBB's parallel_pipeline with 1,000 stages between two ends that keep the order. The stages are
// serial, which is what an actor promises: one item at a time, in order. Called as `stateless` they
// are parallel, which TBB allows where a stage has no state: an item's way is then a row of calls.
//
// And the stream pipeline of adding.hpp, with stages of either kind. Not as a flow graph: its nodes hand the next
// item on before they have sent this one's output, so with two threads rows come out of order.
//
// Usage: tbb native_pipeline SIZE [WORKERS [stateless]]
//        tbb adding ROWS WORKERS OPERATORS BATCH serial|stateless; a batch of 0 is row by row.
// Prints one line of JSON.

#include <tbb/global_control.h>
#include <tbb/parallel_pipeline.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "adding.hpp"

using std::int64_t;

Result pipeline(int64_t n, int64_t stages, tbb::filter_mode mode, std::size_t tokens) {
    constexpr auto serial = tbb::filter_mode::serial_in_order;
    int64_t sent = 0, arrived = 0, in_order = 0;
    auto line = tbb::make_filter<void, int64_t>(serial, [&](tbb::flow_control& flow) {
        if (sent == n) flow.stop();
        return sent++;
    });
    auto stage = tbb::make_filter<int64_t, int64_t>(mode, [](int64_t item) { return item + 1; });
    for (int64_t i = 0; i < stages; ++i) line = line & stage;
    auto whole = line & tbb::make_filter<int64_t, void>(serial, [&](int64_t value) {
        in_order += value == arrived++ + stages;
    });
    auto begin = std::chrono::steady_clock::now();
    tbb::parallel_pipeline(tokens, whole);
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    return {n * stages, seconds.count(), in_order, n};
}

template <class Item>
Result adding(Source source, int64_t operators, tbb::filter_mode mode) {
    constexpr auto serial = tbb::filter_mode::serial_in_order;
    constexpr std::size_t tokens = 16;
    Sink sink{operators};
    auto line = tbb::make_filter<void, Item>(serial, [&](tbb::flow_control& flow) {
        Item item{};
        if (source.is_done()) flow.stop();
        else source.make(item);
        return item;
    });
    const auto each = tbb::make_filter<Item, Item>(mode, [](Item item) { return add_one(item); });
    for (int64_t i = 0; i < operators; ++i) line = line & each;
    auto whole = line & tbb::make_filter<Item, void>(serial, [&](Item item) { sink.take(item); });
    const Timed time;
    tbb::parallel_pipeline(tokens, whole);
    return time.result(source, sink);
}

int main(int argc, char** argv) {
    const std::string benchmark = argc > 1 ? argv[1] : "";
    if (benchmark != "native_pipeline" && !(benchmark == "adding" && argc == 7))
        return std::fprintf(stderr, "usage: tbb native_pipeline SIZE [WORKERS]\n"), 2;
    tbb::global_control workers(tbb::global_control::max_allowed_parallelism,
                                argc > 3 ? std::atoi(argv[3]) : 1);
    const bool stateless = argc > 4 && std::string(argv[argc > 6 ? 6 : 4]) == "stateless";
    const auto mode = stateless ? tbb::filter_mode::parallel : tbb::filter_mode::serial_in_order;
    if (benchmark == "adding") {
        const int64_t batch = std::atoll(argv[5]), operators = std::atoll(argv[4]);
        const Source source{std::atoll(argv[2]), batch};
        return print(batch == 0 ? adding<Row>(source, operators, mode) : adding<Batch>(source, operators, mode));
    }
    return print(pipeline(std::atoll(argv[2]), 1000, mode, argc > 5 ? std::atoi(argv[5]) : 16));
}
