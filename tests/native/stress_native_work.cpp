// Chunks of native values through whole, divided and branching stages, on several lanes. The oracle counts
// and adds: every value comes out once, in order, with the sum of its partition so far.
#include <map>

#include "callboard/core/threads/parker.hpp"
#include "callboard/scheduling/flow/flow.hpp"
#include "callboard/scheduling/flow/native_work.hpp"
#include "choosers.hpp"
#include "stress.hpp"

using namespace callboard;
using namespace stress;

namespace {

constexpr std::uint32_t partitions = 5;
constexpr int rounds = 300;

struct Sum {  // of a partition: plain memory
    std::int64_t total = 0;
};

void pass_odd(void*, const Value* values, std::uint64_t count, Output* out) {
    for (std::uint64_t i = 0; i < count; ++i)
        if (values[i].integer % 2 != 0) out->push(values[i]);
}

void add_up(void* object, const Value* values, std::uint64_t count, Output* out) {
    Sum& sum = *static_cast<Sum*>(object);
    for (std::uint64_t i = 0; i < count; ++i) {
        sum.total += values[i].integer;
        out->push_integer(sum.total);
        if (values[i].integer % 3 == 0) out->push_integer(-1);
    }
}

void collect(void* object, const Value* values, std::uint64_t count, Output*) {
    for (std::uint64_t i = 0; i < count; ++i)
        static_cast<std::vector<std::int64_t>*>(object)->push_back(values[i].integer);
}

void tell_total(void* object, Output* out) { out->push_integer(static_cast<Sum*>(object)->total); }
void nothing(void*, Output*) {}
std::uint64_t key_of(void*, const Value* value) { return static_cast<std::uint64_t>(value->integer % 7); }

struct Awake {
    Parker parker;
    static void wake(void* self) { static_cast<Awake*>(self)->parker.unpark(); }
};

void run_one(std::uint64_t seed, int lanes) {
    Random random(seed);
    Atomic<std::int64_t> stopped_at{INT64_MAX};
    Sum sums[partitions], expected_sums[partitions];
    std::vector<std::int64_t> got[2], expected;

    NativeWork filter, keyed, sinks[2];
    int filter_object = 0;
    for (auto* work : {&filter, &keyed, &sinks[0], &sinks[1]}) {
        work->stopped_at = &stopped_at;
        work->finish = nothing;
        work->key_of = key_of;
    }
    filter.process = pass_odd;
    filter.objects = {&filter_object};
    filter.edges = 1;
    keyed.process = add_up;
    keyed.finish = tell_total;
    for (auto& sum : sums) keyed.objects.push_back(&sum);
    keyed.edges = 2;
    for (int i = 0; i < 2; ++i) {
        sinks[i].process = collect;
        sinks[i].objects = {&got[i]};
    }

    Flow::Settings settings;
    settings.window = 4u << random.below(3);
    settings.time_slice_ns = 20'000;
    Flow flow(settings);
    Pool& pool = flow.add_pool(any_chooser(seed));
    Stage& first = flow.add_shared(pool, filter.whole(), all_lanes, 8);
    Stage& divided = flow.add_keyed(pool, keyed.divider(), keyed.partition_work(), all_lanes, 8, partitions);
    flow.connect(first, divided, 0);
    for (auto& sink : sinks) flow.connect(divided, flow.add_ordered(pool, sink.whole(), all_lanes, 1), 0);
    flow.add_entry(first, 0);
    flow.finish_graph();
    std::vector<std::unique_ptr<Awake>> awake;
    for (int i = 0; i < lanes; ++i) {
        awake.push_back(std::make_unique<Awake>());
        pool.add_lane(all_lanes, Awake::wake, awake.back().get());
    }

    std::vector<std::vector<std::int64_t>> input(rounds);
    for (auto& chunk : input)
        for (auto count = random.below(6); count != 0; --count) chunk.push_back(random.below(1000));
    for (auto& chunk : input)
        for (auto integer : chunk) {
            if (integer % 2 == 0) continue;
            auto& sum = expected_sums[Division::partition_of(static_cast<std::uint64_t>(integer % 7), partitions)];
            expected.push_back(sum.total += integer);
            if (integer % 3 == 0) expected.push_back(-1);
        }
    for (auto& sum : expected_sums) expected.push_back(sum.total);

    Atomic<bool> over{false};
    together(lanes + 1, [&](int index) {
        if (index < lanes) {
            while (!over.load(acquire))
                if (pool.run(static_cast<std::uint32_t>(index)).reason == Pool::Rest::idle)
                    awake[static_cast<std::size_t>(index)]->parker.park(patience);
            return;
        }
        for (int round = 0; round <= rounds; ++round) {
            Output chunk(1);
            if (round < rounds)
                for (auto integer : input[static_cast<std::size_t>(round)]) chunk.push_integer(integer);
            Values* values = chunk.take();
            if (round == rounds) (values = Values::make(0))->final = true;
            while (!flow.has_room())
                if (!flow.wait_until_done(flow.admitted() - settings.window + 1, patience))
                    check::give_up(__FILE__, __LINE__, "no room: seed " + std::to_string(seed));
            void* batch = values;
            flow.admit(&batch);
        }
        if (!flow.wait_until_done(rounds + 1, patience))
            check::give_up(__FILE__, __LINE__, "not done: seed " + std::to_string(seed));
        over.store(true, release);
        for (auto& lane : awake) lane->parker.unpark();
    });
    for (auto& rows : got)
        if (rows != expected)
            check::fail(__FILE__, __LINE__, "other values than in sequence: seed " + std::to_string(seed));
}

}  // namespace

TEST("native values come out once, in order, with their partition's sums") {
    for (std::uint64_t seed = 1; seed <= 40; ++seed)
        for (int lanes : {1, 3}) run_one(seed, lanes);
}

CHECK_MAIN
