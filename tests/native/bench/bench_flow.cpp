// What a round costs a pipeline, beside the work: stages of each kind, on one lane and on two, with the
// non-blocking and with the lock-based reorder buffer. The first lane also admits the rounds, so that no
// third thread takes a core. Every run checks that all rounds left, in order.
//
//     bench_flow                                     all tables
//     bench_flow reordering ROUNDS LANES NS SCHEME   one run, for tests/bench: prints a line of JSON
#include <cstring>
#include <memory>
#include <thread>

#include "callboard/scheduling/flow/flow.hpp"
#include "work.hpp"

using namespace callboard;

namespace {

constexpr std::size_t round_count = 7;
constexpr double run_ns = 20e6;  // about how long a run of the tables takes

double speed;  // turns of the generator per nanosecond

struct Shape {
    StageKind kind;
    int stages;
    int lanes;
    double cost_ns;  // of a round, in each stage
    Reordering reordering;
};

// An operator that works on each round for a while and gives it away.
struct Worker {
    int turns;
    Atomic<std::uint64_t> kept{0};

    void work(void* batch) {
        if (turns == 0) return;
        const auto done = bench::work(reinterpret_cast<std::uintptr_t>(batch), turns);
        if (done == 1) kept.store(done, relaxed);  // or the work could be left out
    }

    static void* process(void* self, std::int64_t, void** inputs, Tally& tally) {
        ++tally.taken, ++tally.given;
        static_cast<Worker*>(self)->work(inputs[0]);
        return inputs[0];
    }
    // Eight partitions, by the batch, which is a small number.
    static std::uint32_t split(void*, void* batch, std::uint32_t* partitions) {
        partitions[0] = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(batch) % 8);
        return 1;
    }
    static bool part(void* self, std::uint32_t, std::int64_t, void* batch, Tally& tally) {
        ++tally.taken, ++tally.given;
        static_cast<Worker*>(self)->work(batch);
        return true;
    }
    static void* gather(void*, std::int64_t, void* batch) { return batch; }
};

// The end: counts rounds, and sees whether they come in order.
struct End {
    std::int64_t got{0};
    bool in_order{true};

    static void* process(void* self, std::int64_t serial, void** inputs, Tally& tally) {
        End& end = *static_cast<End*>(self);
        ++tally.taken;
        end.in_order &= serial == end.got && reinterpret_cast<std::intptr_t>(inputs[0]) == serial + 1;
        ++end.got;
        return nullptr;
    }
    static void discard(void*, void*) {}
};

// Nanoseconds for a round.
double pass(Shape shape, std::int64_t rounds) {
    Flow::Settings settings;
    settings.marker_every = 0;
    settings.reordering = shape.reordering;
    Flow flow(settings, Heuristic(Heuristic::last_in_pipeline));
    Worker worker{static_cast<int>(shape.cost_ns * speed)};
    const Operator what{&worker, Worker::process, nullptr, End::discard,
                        Worker::split, Worker::part, Worker::gather};
    Stage* first = nullptr;
    Stage* last = nullptr;
    for (int i = 0; i < shape.stages; ++i) {
        Stage& stage = flow.add(shape.kind, all_lanes, 1, 8, shape.kind == StageKind::serial ? 1 : 8, what);
        if (last != nullptr) flow.connect(*last, stage, 0);
        else first = &stage;
        last = &stage;
    }
    End end;
    Stage& sink = flow.add(StageKind::serial, all_lanes, 1, 0, 1,
                           {&end, End::process, nullptr, End::discard, nullptr, nullptr, nullptr});
    flow.connect(*last, sink, 0);
    flow.finish_graph({{first, 0}});
    const auto lane = [&](int index) {
        while (flow.done() < rounds) {
            const bool worked = flow.step(all_lanes, flow.now());
            if (index != 0) {
                // Some microseconds. A lane that looks all the time takes the lines that the other one writes.
                for (int i = 0; !worked && i < 100; ++i) callboard::relax();
                continue;
            }
            while (flow.admitted() < rounds && flow.has_room()) {
                void* batch = reinterpret_cast<void*>(flow.admitted() + 1);
                flow.admit(&batch);
            }
        }
    };
    Atomic<int> missing{shape.lanes};
    Atomic<std::int64_t> begin{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < shape.lanes; ++i)
        threads.emplace_back([&, i] {
            bench::pin(i);
            if (missing.fetch_sub(1, acq_rel) == 1) begin.store(monotonic_ns(), relaxed);
            while (missing.load(acquire) != 0) callboard::relax();
            lane(i);
        });
    for (auto& thread : threads) thread.join();
    const std::int64_t spent = monotonic_ns() - begin.load(relaxed);
    bench::require(end.got == rounds, "a round is missing");
    bench::require(end.in_order, "a round is out of order");
    return static_cast<double>(spent) / static_cast<double>(rounds);
}

double pass(Shape shape) {
    const double expected = shape.stages * (100.0 + shape.cost_ns) / shape.lanes;
    return pass(shape, static_cast<std::int64_t>(run_ns / expected));
}

const char* name_of(StageKind kind) {
    return kind == StageKind::parallel ? "stateless" : kind == StageKind::serial ? "stateful" : "keyed";
}

void overhead() {
    std::printf("Operators that do nothing, five in a row.\n\n");
    bench::head("ns per round and stage", {"1 lane", "2 lanes"});
    for (const auto kind : {StageKind::serial, StageKind::parallel, StageKind::partitioned}) {
        auto samples = bench::rounds(round_count, {
            {"", [=] { return pass({kind, 5, 1, 0, Reordering::non_blocking}) / 6; }},
            {"", [=] { return pass({kind, 5, 2, 0, Reordering::non_blocking}) / 6; }},
        });
        bench::row(name_of(kind), samples);
    }
    bench::foot();
}

void reordering(int lanes) {
    std::printf("One stateless operator, %d lane%s.\n\n", lanes, lanes == 1 ? "" : "s");
    bench::head("ns per round", {"non-blocking", "locked", "locked / non-blocking"});
    for (const double cost : {0, 50, 100, 200, 500, 1000, 2000, 5000, 10000}) {
        char name[40];
        std::snprintf(name, sizeof name, "%.0f ns", cost);
        const auto samples = bench::rounds(round_count, {
            {"", [=] { return pass({StageKind::parallel, 1, lanes, cost, Reordering::non_blocking}); }},
            {"", [=] { return pass({StageKind::parallel, 1, lanes, cost, Reordering::locked}); }},
        });
        std::printf("| %s |", name);
        for (const auto& sample : samples)
            std::printf(" %.1f (%.1f to %.1f) |", sample.median, sample.least, sample.most);
        std::printf(" %.2f |\n", samples[1].median / samples[0].median);
        std::fflush(stdout);
    }
    bench::foot();
}

// Wrong results end the program before it prints, so what it prints is right.
int one(char** words) {
    const std::int64_t rounds = std::atoll(words[2]);
    const auto scheme = std::strcmp(words[5], "locked") == 0 ? Reordering::locked : Reordering::non_blocking;
    const double ns = pass({StageKind::parallel, 1, std::atoi(words[3]), std::atof(words[4]), scheme}, rounds);
    std::printf("{\"operations\": %lld, \"seconds\": %.9f, \"got\": 1, \"want\": 1}\n",
                static_cast<long long>(rounds), ns * static_cast<double>(rounds) / 1e9);
    return 0;
}

}  // namespace

int main(int count, char** words) {
    speed = bench::turns_per_ns();
    if (count == 6) return one(words);
    overhead();
    for (const int lanes : {1, 2}) reordering(lanes);
}
