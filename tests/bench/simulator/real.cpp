// The graphs of shapes.hpp on real threads: the reference for the simulator. Prints one line of JSON.
//
// Lanes are pinned, if each can have a core, and the sender is not. All rounds are seen to come out in order.
#include <ctime>
#include <thread>

#include "../../native/bench/bench.hpp"
#include "callboard/core/clock.hpp"
#include "callboard/core/threads/parker.hpp"
#include "shapes.hpp"

using namespace shapes;

namespace {

struct Parked {
    Parker parker;
    static void wake(void* self) { static_cast<Parked*>(self)->parker.unpark(); }
};

Parked sender;
Atomic<std::int64_t> wanted{INT64_MAX};  // the round after which the sender goes on
std::int64_t warm, last;
struct Times {
    std::int64_t clock, cpu;
    static Times now() {
        timespec cpu;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
        return {monotonic_ns(), cpu.tv_sec * std::int64_t{1000000000} + cpu.tv_nsec};
    }
} began, ended;

}  // namespace

void shapes::perform(Operator& op, Batch& batch) {
    if (op.flops == 0) fill(batch.values, batch.rows);
    else multiply(batch.values, batch.rows, op.flops);
}

void shapes::came_to_sink(std::int64_t serial, Batch&) {
    if (serial == warm) began = Times::now();
    if (serial == last) ended = Times::now();
    if (serial == wanted.load(seq_cst)) sender.parker.unpark();
}

int main(int count, char** words) {
    const Options options(count, words);
    static Graph graph(options);
    warm = graph.warm, last = graph.last();
    std::vector<std::unique_ptr<Parked>> parked;
    std::vector<void*> selves;
    for (std::size_t i = 0; i < graph.pools().size(); ++i) {
        parked.push_back(std::make_unique<Parked>());
        selves.push_back(parked.back().get());
    }
    const auto lanes = graph.add_lanes(Parked::wake, selves);
    Atomic<bool> over{false};
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < lanes.size(); ++i)
        threads.emplace_back([&, i] {
            if (lanes.size() <= std::thread::hardware_concurrency()) bench::pin(static_cast<int>(i));
            while (!over.load(acquire))
                if (lanes[i].pool->run(lanes[i].number).reason == Pool::Rest::idle) parked[i]->parker.park();
        });
    const auto window = static_cast<std::int64_t>(graph.flow.settings.window);
    // The sender sleeps until half of the window is free.
    while (graph.flow.admitted() <= last + window / 2) {
        while (!graph.flow.has_room()) {
            wanted.store(graph.flow.admitted() - window / 2, seq_cst);
            if (graph.flow.done() <= wanted.load(relaxed)) sender.parker.park(10'000'000);
        }
        graph.admit();
    }
    while (graph.flow.done() <= last) sender.parker.park(1'000'000);
    over.store(true, release);
    for (auto& lane : parked) lane->parker.unpark();
    for (auto& thread : threads) thread.join();
    std::printf("{\"seconds\": %.9f, \"cpu\": %.9f, \"rounds\": %lld, \"rows\": %u, \"operators\": %zu}\n",
                static_cast<double>(ended.clock - began.clock) / 1e9,
                static_cast<double>(ended.cpu - began.cpu) / 1e9, static_cast<long long>(graph.rounds), graph.rows,
                graph.operators());
    return 0;
}
