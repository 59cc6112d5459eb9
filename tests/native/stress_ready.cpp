// Rounds that come one by one, at stages whose places share words of the ready index, while lanes take them
// and go idle: each makes the last of a place come and go. A wake-up that is lost leaves a round behind.
#include "callboard/core/threads/parker.hpp"
#include "callboard/scheduling/flow/pool.hpp"
#include "stress.hpp"

using namespace callboard;
using namespace stress;

namespace {

// A stage that counts its rounds only.
struct Counter final : Stage {
    using Stage::Stage;
    Atomic<std::int64_t> brought{0}, taken{0};

    // Who finds nothing takes its time before it acts on that.
    std::int64_t waiting() const override {
        const auto rounds = brought.load(seq_cst) - taken.load(relaxed);
        static thread_local Random random(1);
        if (rounds == 0) random.pause();
        return rounds;
    }
    void put(std::uint32_t, std::int64_t, void*) override {
        brought.fetch_add(1, seq_cst);
        announce();
    }
    std::int64_t work(RowTotals& counts, double, std::uint32_t) override {
        std::int64_t rounds = 0;
        for (; waiting() > 0; ++rounds) taken.store(taken.load(relaxed) + 1, release);  // pairs with come_and_go()
        counts.taken += static_cast<std::uint64_t>(rounds);
        return rounds;
    }
};

struct Nobody final : SinkObserver {
    void round_left(std::int64_t) override {}
    bool is_oldest(std::int64_t) const override { return false; }
    std::int64_t now() const override { return 0; }
};

struct Parked {
    Parker parker;
    static void wake(void* self) { static_cast<Parked*>(self)->parker.unpark(); }
};

// A producer at each place brings a round, and the next one when all have been taken.
void come_and_go(const std::vector<std::uint32_t>& places, std::uint32_t size, int lane_count) {
    const TimeSlices slices;
    Nobody nobody;
    Pool pool(slices, nullptr);
    Stages stages;
    for (std::uint32_t i = 0; i < size; ++i) {
        stages.push_back(std::make_unique<Counter>(Stage::Setup{pool, nobody, i, i, all_lanes, 1}, Work{}));
        pool.add(*stages.back());
    }
    pool.finish(stages);
    const auto counter = [&](std::uint32_t place) -> Counter& { return static_cast<Counter&>(*stages[place]); };
    std::vector<std::unique_ptr<Parked>> parked;
    for (int i = 0; i < lane_count; ++i) {
        parked.push_back(std::make_unique<Parked>());
        pool.add_lane(all_lanes, Parked::wake, parked.back().get());
    }
    const int producers = static_cast<int>(places.size());
    Rounds rounds(20'000);
    Atomic<int> round{0}, ready{0};
    together(producers + lane_count, [&](int index) {
        if (index >= producers) {
            const auto lane = static_cast<std::uint32_t>(index - producers);
            while (!rounds.over())
                if (pool.run(lane).reason == Pool::Rest::idle) parked[lane]->parker.park(patience);
            return;
        }
        Random random(static_cast<std::uint64_t>(index));
        Counter& own = counter(places[static_cast<std::size_t>(index)]);
        for (int here = 1;; ++here) {
            if (index == 0) {
                await([&] { return ready.load(acquire) == (here - 1) * (producers - 1); });
                if (!rounds.go_on(here)) break;
                round.store(here, release);
            } else {
                ready.fetch_add(here == 1 ? 0 : 1, release);
                await([&] { return round.load(acquire) >= here || rounds.over(); });
                if (rounds.over()) break;
            }
            random.pause();
            own.put(0, 0, nullptr);
            const auto deadline = monotonic_ns() + patience;
            for (const auto place : places)
                await([&] {
                    if (monotonic_ns() > deadline)
                        check::give_up(__FILE__, __LINE__, "a lost wake-up: a round waits beside idle lanes");
                    return counter(place).taken.load(acquire) >= here;  // pairs with work()
                });
        }
        for (auto& lane : parked) lane->parker.unpark();
    });
}

}  // namespace

TEST("a round that comes while its stage is taken out of the index is not left behind") {
    come_and_go({0}, 1, 1);
    come_and_go({0}, 1, 2);
}

TEST("a round that comes while its word of the index becomes empty is not left behind") {
    come_and_go({64, 65}, 128, 1);
    come_and_go({67, 4100}, 8192, 2);
}

TEST("rounds of many places in few words are not left behind") {
    come_and_go({0, 1, 63, 64, 4096}, 4097, 3);
}

CHECK_MAIN
