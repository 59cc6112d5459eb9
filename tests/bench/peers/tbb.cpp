// oneTBB's parallel_pipeline with 1,000 stages between two ends that keep the order. The stages are
// serial, which is what an actor promises: one item at a time, in order. Called as `stateless` they
// are parallel, which TBB allows where a stage has no state: an item's way is then a row of calls.
// Usage: tbb native_pipeline SIZE [WORKERS [stateless]]; prints one line of JSON.

#include <tbb/global_control.h>
#include <tbb/parallel_pipeline.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "result.hpp"

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

int main(int argc, char** argv) {
    if (argc < 3 || std::string(argv[1]) != "native_pipeline")
        return std::fprintf(stderr, "usage: tbb native_pipeline SIZE [WORKERS]\n"), 2;
    tbb::global_control workers(tbb::global_control::max_allowed_parallelism,
                                                            argc > 3 ? std::atoi(argv[3]) : 1);
    bool stateless = argc > 4 && std::string(argv[4]) == "stateless";
    auto mode = stateless ? tbb::filter_mode::parallel : tbb::filter_mode::serial_in_order;
    return print(pipeline(std::atoll(argv[2]), 1000, mode, argc > 5 ? std::atoi(argv[5]) : 16));
}
