// The overhead of a round in a pipeline, besides the work: stages of each kind, on one lane and on two, with the
// non-blocking and with the lock-based reorder buffer. The first lane also admits the rounds, so that no
// third thread takes a core. Every run checks that all rounds left, in order.
//
//     bench_flow                                     all tables
//     bench_flow reordering ROUNDS LANES NS SCHEME   one run, for tests/bench: prints a line of JSON
#include <cstring>
#include <memory>
#include <thread>

#include "callboard/scheduling/flow/flow.hpp"
#include "../../bench/peers/reorder_locked.hpp"
#include "../../bench/peers/stages.hpp"
#include "work.hpp"

using namespace callboard;

namespace {

constexpr std::size_t round_count = 7;
constexpr double run_ns = 20e6;  // about how long a run of the tables takes

double speed;  // turns of the generator per nanosecond

enum class Kind { stateless, stateful, keyed };

struct Shape {
    Kind kind;
    int stages;
    int lanes;
    double cost_ns;  // of a round, in each stage
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

    static void* process(void* self, std::int64_t, void** inputs, RowTotals& counts) {
        ++counts.taken, ++counts.given;
        static_cast<Worker*>(self)->work(inputs[0]);
        return inputs[0];
    }
    // Eight partitions, by the batch, which is a small number.
    static void* divide(void*, std::int64_t, void** inputs, RowTotals& counts) {
        ++counts.taken, ++counts.given;
        auto* division = new Division;
        division->batch = inputs[0];
        division->divide_among(8, 1);
        division->add_to(static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(inputs[0]) % 8));
        return division;
    }
    static void process_sub_batch(void* self, Division& division, std::uint32_t, RowTotals& counts) {
        ++counts.taken, ++counts.given;
        static_cast<Worker*>(self)->work(division.batch);
    }
    static void* gather(void*, Division& division) {
        void* batch = division.batch;
        delete &division;
        return batch;
    }
};

// The end: counts rounds, and sees whether they come in order.
struct End {
    std::int64_t got{0};
    bool in_order{true};

    static void* process(void* self, std::int64_t serial, void** inputs, RowTotals& counts) {
        End& end = *static_cast<End*>(self);
        ++counts.taken;
        end.in_order &= serial == end.got && reinterpret_cast<std::intptr_t>(inputs[0]) == serial + 1;
        ++end.got;
        return nullptr;
    }
    static void discard(void*, void*) {}
};

// Nanoseconds for a round.
template <template <class> class Buffer>
double pass(Shape shape, std::int64_t rounds) {
    Flow::Settings settings;
    settings.marker_every = 0;
    Flow flow(settings);
    Pool& pool = flow.add_pool(std::make_unique<ChooseLatest>(true));
    Worker worker{static_cast<int>(shape.cost_ns * speed)};
    const Work divider{&worker, Worker::divide, nullptr, End::discard, nullptr, nullptr};
    const Work work{&worker, Worker::process, nullptr, End::discard, Worker::process_sub_batch, Worker::gather};
    Stage* last = nullptr;
    for (int i = 0; i < shape.stages; ++i) {
        Stage& stage = shape.kind == Kind::keyed
                           ? add_keyed<HybridQueue, Buffer>(flow, pool, divider, work, all_lanes, 8, 8)
                       : shape.kind == Kind::stateless ? add_shared<Buffer>(flow, pool, work, all_lanes, 8)
                                                       : flow.add_ordered(pool, work, all_lanes, 1);
        if (last != nullptr) flow.connect(*last, stage, 0);
        else flow.add_entry(stage, 0);
        last = &stage;
    }
    End end;
    const Work ending{&end, End::process, nullptr, End::discard, nullptr, nullptr};
    flow.connect(*last, flow.add_ordered(pool, ending, all_lanes, 1), 0);
    flow.finish_graph();
    const auto lane = [&](int index) {
        while (flow.done() < rounds) {
            const bool worked = pool.step(all_lanes);
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

template <template <class> class Buffer = ReorderBuffer>
double pass(Shape shape) {
    const double expected = shape.stages * (100.0 + shape.cost_ns) / shape.lanes;
    return pass<Buffer>(shape, static_cast<std::int64_t>(run_ns / expected));
}

const char* name_of(Kind kind) {
    return kind == Kind::stateless ? "stateless" : kind == Kind::stateful ? "stateful" : "keyed";
}

void overhead() {
    std::printf("Operators that do nothing, five in a row.\n\n");
    bench::head("ns per round and stage", {"1 lane", "2 lanes"});
    for (const auto kind : {Kind::stateful, Kind::stateless, Kind::keyed}) {
        auto samples = bench::rounds(round_count, {
            {"", [=] { return pass({kind, 5, 1, 0}) / 6; }},
            {"", [=] { return pass({kind, 5, 2, 0}) / 6; }},
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
            {"", [=] { return pass({Kind::stateless, 1, lanes, cost}); }},
            {"", [=] { return pass<LockedReorderBuffer>({Kind::stateless, 1, lanes, cost}); }},
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
    const Shape shape{Kind::stateless, 1, std::atoi(words[3]), std::atof(words[4])};
    const bool locked = std::strcmp(words[5], "locked") == 0;
    const double ns = locked ? pass<LockedReorderBuffer>(shape, rounds) : pass<ReorderBuffer>(shape, rounds);
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
