// Operators seem faster in turns, while two lanes work and rounds come in. Every round has to come through, in order,
// and nobody pauses once the experiment is over.
#include <sched.h>

#include <thread>

#include "callboard/scheduling/flow/flow.hpp"
#include "callboard/streams/experiments/virtual_speed_up.hpp"
#include "stress.hpp"

using namespace callboard;
using namespace stress;

namespace {

Atomic<std::int64_t> pauses{0};

std::int64_t paused_for(std::int64_t nanoseconds, bool) {
    pauses.fetch_add(1, relaxed);
    const auto end = monotonic_ns() + nanoseconds;
    while (monotonic_ns() < end) std::this_thread::yield();
    return monotonic_ns();
}

// An operator, and the only lane that works on it, on a thread of its own.
struct Member {
    std::int64_t rounds = 0;
    bool in_order = true;
    Atomic<std::uint64_t> woken{0};
    Pool* pool = nullptr;

    Work work() {
        Work work;
        work.self = this;
        work.process = [](void* self, std::int64_t serial, void** inputs, RowTotals& counts) -> void* {
            Member& me = *static_cast<Member*>(self);
            me.in_order = me.in_order && serial == me.rounds;
            ++me.rounds;
            ++counts.taken, ++counts.given;
            const auto until = monotonic_ns() + 20'000;
            while (monotonic_ns() < until) relax();
            return inputs[0];
        };
        work.discard = [](void*, void*) {};
        return work;
    }

    void run(const Atomic<bool>& over) {
        while (!over.load(acquire)) {
            const auto seen = woken.load(seq_cst);
            while (pool->run(0).reason == Pool::Rest::time_over) {}
            await([&] { return woken.load(seq_cst) != seen || over.load(acquire); });
        }
    }
};

// On one processor there is nothing to pause: no two slices overlap.
bool may_overlap() {
    cpu_set_t processors;
    return sched_getaffinity(0, sizeof processors, &processors) == 0 && CPU_COUNT(&processors) > 1;
}

}  // namespace

TEST("rounds come through in order while operators seem faster in turns") {
    int rounds = 0;
    Flow::Settings settings;
    settings.window = 16;
    Flow flow(settings);
    Member first, second;
    for (Member* member : {&first, &second}) member->pool = &flow.add_pool(nullptr);
    Stage& begin = flow.add_ordered(*first.pool, first.work(), all_lanes, 1);
    Stage& end = flow.add_ordered(*second.pool, second.work(), all_lanes, 1);
    flow.add_entry(begin, 0);
    flow.connect(begin, end, 0);
    flow.finish_graph();
    VirtualSpeedUp experiment(2, paused_for, false);
    Atomic<bool> over{false};
    std::vector<std::thread> threads;
    for (Member* member : {&first, &second}) {
        member->pool->add_lane(
            all_lanes, [](void* lane) { static_cast<Member*>(lane)->woken.fetch_add(1, seq_cst); }, member);
        threads.emplace_back([&, member] { member->run(over); });
    }
    threads.emplace_back([&] {  // who makes experiments
        Random random(7);
        while (!over.load(acquire)) {
            for (Member* member : {&first, &second}) member->pool->observe(&experiment);
            for (int turn = 0; turn < 6; ++turn) {
                std::vector<double> weights(2, 0.0);
                if (turn % 3 != 0) weights[static_cast<std::size_t>(turn % 3 - 1)] = 0.5;
                experiment.set(weights, false);
                const auto until = monotonic_ns() + 1'000'000 + random.below(1'000'000);
                while (monotonic_ns() < until && !over.load(acquire)) std::this_thread::yield();
                CHECK(experiment.inserted() >= 0.0);
            }
            experiment.set(std::vector<double>(2, 0.0), false);
            for (Member* member : {&first, &second}) member->pool->observe(nullptr);
        }
    });
    void* batch = &flow;
    const auto deadline = monotonic_ns() + patience;
    for (; rounds < 2000 || (may_overlap() && pauses.load(relaxed) < 10 && monotonic_ns() < deadline); ++rounds) {
        await([&] { return flow.has_room(); });
        experiment.arrives();
        flow.admit(&batch);
        experiment.leaves(!flow.has_room());
    }
    await([&] { return flow.done() == rounds; });
    over.store(true, release);
    for (auto& thread : threads) thread.join();
    for (Member* member : {&first, &second}) {
        CHECK(member->in_order);
        CHECK_EQUAL(member->rounds, rounds);
    }
    CHECK(pauses.load(relaxed) > 0 || !may_overlap());
    const auto before = pauses.load(relaxed);
    experiment.arrives();
    experiment.leaves(false);
    CHECK_EQUAL(pauses.load(relaxed), before);
}

CHECK_MAIN
