// The threads that work on a flow, and the lanes that are woken; stress_flow.cpp has the races.
#include "callboard/scheduling/flow/flow.hpp"
#include "check.hpp"

using namespace callboard;

namespace {

// A run of a lane does not end by the clock, however long the test is held up.
Flow::Settings patient() {
    Flow::Settings settings;
    settings.activation_ns = INT64_MAX;
    return settings;
}

// One ordered stage, whose operator calls a function, and one lane, which counts how often it is woken.
struct OneStage {
    Flow flow{patient()};
    Pool& pool = flow.add_pool(std::make_unique<ChooseLatest>(true));
    int woken = 0;
    void (*during)(OneStage&) = nullptr;

    Work work() {
        Work work;
        work.self = this;
        work.process = [](void* self, std::int64_t, void**, RowTotals& counts) -> void* {
            auto& one = *static_cast<OneStage*>(self);
            ++counts.taken;
            if (one.during != nullptr) one.during(one);
            return nullptr;
        };
        return work;
    }

    OneStage() {
        flow.add_entry(flow.add_ordered(pool, work(), all_lanes, 1), 0);
        flow.finish_graph();
        pool.add_lane(all_lanes, [](void* lane) { ++static_cast<OneStage*>(lane)->woken; }, this);
    }

    void admit(int rounds) {
        void* batch = this;
        for (int i = 0; i < rounds; ++i) flow.admit(&batch);
    }
};

}  // namespace

TEST("a lane is woken by the first round, and works until nothing is left") {
    OneStage one;
    one.admit(3);
    CHECK_EQUAL(one.woken, 1);
    CHECK_EQUAL(one.pool.run(0).reason, Pool::Rest::idle);
    CHECK_EQUAL(one.flow.done(), 3);
}

TEST("a helper that leaves rounds behind wakes the lane that found it at work") {
    OneStage one;
    one.admit(3);
    one.during = [](OneStage& one) {
        one.during = nullptr;
        CHECK_EQUAL(one.pool.run(0).reason, Pool::Rest::idle);  // the stage is taken
    };
    CHECK(one.pool.help(all_lanes));
    CHECK_EQUAL(one.flow.done(), 1);
    CHECK_EQUAL(one.woken, 2);
}

TEST("a round that comes while the awake lane is at work on a long one wakes another lane") {
    OneStage one, other;  // `other` lends its work only
    Flow flow{patient()};
    Pool& pool = flow.add_pool(nullptr);
    for (OneStage* each : {&one, &other}) flow.add_entry(flow.add_ordered(pool, each->work(), all_lanes, 1), 0);
    flow.finish_graph();
    int woken[2] = {0, 0};
    for (int& count : woken) pool.add_lane(all_lanes, [](void* lane) { ++*static_cast<int*>(lane); }, &count);

    static Flow* running;  // what `during` has no other way to know
    running = &flow;
    void* batches[2] = {&one, nullptr};
    flow.admit(batches);
    CHECK_EQUAL(woken[0] + woken[1], 1);
    one.during = [](OneStage& one) {
        one.during = nullptr;
        void* batches[2] = {nullptr, running};
        running->admit(batches);
    };
    CHECK_EQUAL(pool.run(0).reason, Pool::Rest::idle);
    CHECK_EQUAL(woken[0], 1);
    CHECK_EQUAL(woken[1], 1);
}

TEST("a lane that has worked for a while wakes another if input waits at two stages") {
    constexpr int stages = 4;
    OneStage one[stages];  // they lend their work only
    Flow flow{patient()};
    Pool& pool = flow.add_pool(nullptr);
    for (OneStage& each : one) flow.add_entry(flow.add_shared(pool, each.work(), all_lanes, 2), 0);
    flow.finish_graph();
    int woken[2] = {0, 0};
    for (int& count : woken) pool.add_lane(all_lanes, [](void* lane) { ++*static_cast<int*>(lane); }, &count);
    for (OneStage& each : one)
        each.during = [](OneStage&) {
            const std::int64_t end = monotonic_ns() + 2 * Pool::share_every;
            while (monotonic_ns() < end) relax();
        };
    void* batches[stages] = {&one[0], &one[1], &one[2], &one[3]};
    int before = 0;
    for (int round = 0; round < 2; ++round) {  // in the second one, the costs are known
        before = woken[1];
        flow.admit(batches);
        for (const std::uint32_t lane : {0u, 1u}) CHECK_EQUAL(pool.run(lane).reason, Pool::Rest::idle);
    }
    CHECK_EQUAL(woken[0], 2);
    CHECK_EQUAL(woken[1], before + 1);
}

TEST("a round is estimated by its rows, though a lane takes several at once") {
    OneStage one;
    Flow flow{{}};
    Pool& pool = flow.add_pool(nullptr);
    Stage& stage = flow.add_shared(pool, one.work(), all_lanes, 2);
    flow.add_entry(stage, 0);
    flow.finish_graph();
    void* batch = &one;
    for (int i = 0; i < 64; ++i) flow.admit(&batch);
    while (pool.step(all_lanes)) {}
    CHECK_EQUAL(flow.done(), 64);
    CHECK_EQUAL(stage.rows_per_unit(), 1.0);
}

TEST("an empty round passes a chain of idle stages, however long, and ends no stack") {
    constexpr int count = 100'000;
    OneStage one;
    Flow flow{{}};
    Pool& pool = flow.add_pool(nullptr);
    Stage* last = nullptr;
    for (int i = 0; i < count; ++i) {
        Stage& stage = i % 2 == 0 ? flow.add_ordered(pool, one.work(), all_lanes, 1)
                                  : flow.add_shared(pool, one.work(), all_lanes, 4);
        if (last == nullptr) flow.add_entry(stage, 0);
        else flow.connect(*last, stage, 0);
        last = &stage;
    }
    flow.finish_graph();
    void* batch = nullptr;
    for (int i = 0; i < 3; ++i) flow.admit(&batch);
    flow.drain();
    CHECK_EQUAL(flow.done(), 3);
}

TEST("rounds on their way at the end wake no lane, which may have ended") {
    OneStage one, other;  // for the work
    Flow flow{{}};
    Pool& pool = flow.add_pool(nullptr);
    Pool& second = flow.add_pool(nullptr);
    Work passing = one.work();
    passing.process = [](void* self, std::int64_t, void**, RowTotals&) { return self; };
    Stage& first = flow.add_ordered(pool, passing, all_lanes, 1);
    flow.add_entry(first, 0);
    flow.connect(first, flow.add_ordered(second, other.work(), all_lanes, 1), 0);
    flow.finish_graph();
    int woken = 0;
    second.add_lane(all_lanes, [](void* lane) { ++*static_cast<int*>(lane); }, &woken);
    void* batch = &one;
    for (int i = 0; i < 3; ++i) flow.admit(&batch);
    flow.drain();
    CHECK_EQUAL(flow.done(), 3);
    CHECK_EQUAL(woken, 0);
}

TEST("a round leaves when it has left all sinks, and not before") {
    OneStage one, other;
    Flow flow{{}};
    Pool& pool = flow.add_pool(nullptr);
    Pool& second = flow.add_pool(nullptr);
    flow.add_entry(flow.add_ordered(pool, one.work(), all_lanes, 1), 0);
    flow.add_entry(flow.add_ordered(second, other.work(), all_lanes, 1), 0);
    flow.finish_graph();
    void* batches[2] = {&one, &other};
    for (int round = 1; round <= 600; ++round) {  // more than twice the window
        flow.admit(batches);
        while (pool.step(all_lanes)) {}
        CHECK_EQUAL(flow.done(), round - 1);
        while (second.step(all_lanes)) {}
        CHECK_EQUAL(flow.done(), round);
    }
}

TEST("a stage with several inputs is ready when each has brought its part, and not before") {
    OneStage one;
    Flow flow{{}};
    Pool& pool = flow.add_pool(nullptr);
    Stage& stage = flow.add_ordered(pool, one.work(), all_lanes, 5);
    flow.finish_graph();
    for (std::int64_t serial = 0; serial < 20; ++serial) {
        for (std::uint32_t input : {3u, 0u, 4u, 1u}) stage.put(input, serial, nullptr);
        CHECK(!pool.step(all_lanes));
        stage.put(2, serial, nullptr);
        CHECK(pool.step(all_lanes));
    }
    CHECK_EQUAL(flow.done(), 20);
}

TEST("each round of several inputs is announced once, by the part that completes it") {
    struct Counting final : StageObserver {
        int told = 0;
        void something_waits(Stage&) override { ++told; }
        bool work_behind(const Stage&) override { return false; }
    } pool;
    struct Nobody final : SinkObserver {
        void round_left(std::int64_t) override {}
        bool is_oldest(std::int64_t) const override { return false; }
        std::int64_t now() const override { return 0; }
    } nobody;
    OneStage one;
    const Stage::Setup setup{pool, nobody, 0, 0, all_lanes, 1};
    OrderedStage ordered(setup, one.work(), 3, 64);
    FusedStage fused(setup, 64, 0);
    fused.add_member(one.work(), 3);
    for (std::uint32_t input : {0u, 1u, 2u}) fused.open(0, input);
    fused.finish();
    for (Stage* stage : {static_cast<Stage*>(&ordered), static_cast<Stage*>(&fused)}) {
        const auto put = [&](std::uint32_t input, std::int64_t from, std::int64_t to) {
            for (auto serial = from; serial < to; ++serial) stage->put(input, serial, nullptr);
        };
        pool.told = 0;
        put(0, 0, 10), put(2, 0, 1);
        CHECK_EQUAL(pool.told, 0);
        put(1, 0, 10);
        CHECK_EQUAL(pool.told, 1);  // though a complete round waits, the parts of others are not announced
        put(2, 1, 10);
        CHECK_EQUAL(pool.told, 10);
        CHECK(stage->enter());
        RowTotals counts;
        CHECK_EQUAL(stage->work(counts, 100, 0), 10);
        stage->leave();
        put(1, 10, 11), put(2, 10, 11);
        CHECK_EQUAL(pool.told, 10);
        put(0, 10, 11);
        CHECK_EQUAL(pool.told, 11);
    }
}

TEST("rounds of several inputs that pile up wake another lane") {
    OneStage one;
    Flow flow{patient()};
    Pool& pool = flow.add_pool(nullptr);
    Stage& stage = flow.add_ordered(pool, one.work(), all_lanes, 2);
    for (std::uint32_t input : {0u, 1u}) flow.add_entry(stage, input);
    flow.finish_graph();
    int woken[2] = {0, 0};
    for (int& count : woken) pool.add_lane(all_lanes, [](void* lane) { ++*static_cast<int*>(lane); }, &count);
    void* batches[2] = {&one, &one};
    for (int i = 0; i < 3; ++i) flow.admit(batches);
    CHECK_EQUAL(woken[0], 1);
    CHECK_EQUAL(woken[1], 1);
    flow.drain();
}

TEST("rounds keep their order when they pile up in a stage, and when they come one by one again") {
    struct Order {
        std::vector<std::uintptr_t> got;
        static void* process(void* self, std::int64_t, void** inputs, RowTotals& counts) {
            ++counts.taken;
            static_cast<Order*>(self)->got.push_back(reinterpret_cast<std::uintptr_t>(inputs[0]));
            return nullptr;
        }
    } order;
    Flow flow{{}};
    Pool& pool = flow.add_pool(nullptr);
    Work work;
    work.self = &order;
    work.process = Order::process;
    flow.add_entry(flow.add_ordered(pool, work, all_lanes, 1), 0);
    flow.finish_graph();
    std::uintptr_t next = 1;
    for (int pile : {1, 3, 4, 5, 1, 256, 2, 256, 1}) {
        for (int i = 0; i < pile; ++i) {
            void* batch = reinterpret_cast<void*>(next++);
            flow.admit(&batch);
        }
        while (pool.step(all_lanes)) {}
    }
    CHECK_EQUAL(order.got.size(), next - 1);
    for (std::size_t i = 0; i < order.got.size(); ++i) CHECK_EQUAL(order.got[i], i + 1);
}

TEST("a round without rows wakes no lane at a keyed stage, nor at one of several lanes") {
    OneStage one;  // for the work
    Flow flow{patient()};
    Pool& pool = flow.add_pool(nullptr);
    flow.add_entry(flow.add_keyed(pool, one.work(), one.work(), all_lanes, 2, 3), 0);
    flow.add_entry(flow.add_shared(pool, one.work(), all_lanes, 2), 0);
    flow.finish_graph();
    int woken = 0;
    pool.add_lane(all_lanes, [](void* lane) { ++*static_cast<int*>(lane); }, &woken);
    void* batches[2] = {nullptr, nullptr};
    for (int i = 0; i < 3; ++i) flow.admit(batches);
    CHECK_EQUAL(flow.done(), 3);
    CHECK_EQUAL(woken, 0);
}

TEST("a partition's rows are its own, and the time of some of its sub-batches is taken") {
    // A round has rows for partitions 0 to 2: so many as its number, 1, and none.
    struct Keyed {
        std::int64_t sub_batches = 0;
        static void* divide(void*, std::int64_t serial, void** inputs, RowTotals&) {
            auto* division = new Division;
            division->batch = inputs[0];
            division->divide_among(3, static_cast<std::size_t>(serial + 1));
            for (std::int64_t i = 0; i < serial; ++i) division->add_to(0);
            division->add_to(1);
            return division;
        }
        static void process_sub_batch(void* self, Division& division, std::uint32_t number, RowTotals& counts) {
            ++static_cast<Keyed*>(self)->sub_batches;
            counts.taken += division.sub_batch(number).rows.size();
            for (const auto begin = monotonic_ns(); monotonic_ns() == begin;) {}
        }
        static void* gather(void*, Division& division) {
            delete &division;
            return nullptr;
        }
    } keyed;
    const Work divider{&keyed, Keyed::divide, nullptr, nullptr, nullptr, nullptr};
    const Work work{&keyed, nullptr, nullptr, nullptr, Keyed::process_sub_batch, Keyed::gather};
    for (const bool one_by_one : {false, true}) {
        Flow::Settings settings;
        settings.one_by_one = one_by_one;
        Flow flow{settings};
        Pool& pool = flow.add_pool(nullptr);
        auto& stage = flow.add_keyed(pool, divider, work, all_lanes, 2, 3);
        flow.add_entry(stage, 0);
        flow.finish_graph();
        void* batch = &keyed;
        for (int i = 0; i < 5; ++i) flow.admit(&batch);
        while (pool.step(all_lanes)) {}
        CHECK_EQUAL(flow.done(), 5);
        CHECK_EQUAL(stage.figures_of(0).taken(), 10u);
        CHECK_EQUAL(stage.figures_of(1).taken(), 5u);
        CHECK_EQUAL(stage.figures_of(2).taken(), 0u);
        CHECK_EQUAL(stage.taken(), 15u);
        for (const auto partition : {0u, 1u}) CHECK_EQUAL(stage.figures_of(partition).busy_ns() > 0, !one_by_one);
        CHECK_EQUAL(stage.figures_of(2).busy_ns(), 0);
    }
    CHECK_EQUAL(keyed.sub_batches, 2 * (4 + 5));
}

namespace {

// An operator that gives a round's batch, a number, in as many parts as it may, and one behind it that notes what comes.
struct Parted {
    Flow flow{patient()};
    Pool& pool = flow.add_pool(std::make_unique<ChooseLatest>(true));
    Stage* first = nullptr;
    Stage* last = nullptr;
    std::string noted;  // how large each part was

    static Parted& of(void* self) { return *static_cast<Parted*>(self); }
    static void* batch(std::intptr_t rows) { return reinterpret_cast<void*>(rows); }

    static void* process(void* self, std::int64_t serial, void** inputs, RowTotals& counts) {
        std::intptr_t part = 0;
        for (auto row = reinterpret_cast<std::intptr_t>(inputs[0]); row != 0; --row, ++counts.taken) {
            ++part;
            if (row != 1 && of(self).first->may_hand_on_part(serial))
                of(self).first->hand_on_part(serial, batch(std::exchange(part, 0)));
        }
        return batch(part);
    }
    static void* note(void* self, std::int64_t, void** inputs, RowTotals& counts) {
        of(self).noted += std::to_string(reinterpret_cast<std::intptr_t>(inputs[0]));
        ++counts.taken;
        return nullptr;
    }

    Work work(void* (*process)(void*, std::int64_t, void**, RowTotals&)) {
        Work work;
        work.self = this;
        work.process = process;
        return work;
    }

    explicit Parted(bool is_shared, std::size_t pools = 1) {
        first = is_shared ? &flow.add_shared(pool, work(process), all_lanes, 2)
                          : &flow.add_ordered(pool, work(process), all_lanes, 1);
        Pool& behind = pools == 1 ? pool : flow.add_pool(nullptr);
        last = &flow.add_ordered(behind, work(note), all_lanes, 1);
        flow.connect(*first, *last, 0);
        flow.add_entry(*first, 0);
        flow.finish_graph();
        pool.add_lane(all_lanes, [](void*) {}, this);
    }

    void admit(std::intptr_t rows) {
        void* one = batch(rows);
        flow.admit(&one);
    }
};

}  // namespace

TEST("parts of a round come behind all earlier rounds and before all later ones") {
    for (const bool is_shared : {false, true}) {
        Parted parted(is_shared);
        for (const int rows : {1, 3, 1, 2}) parted.admit(rows);
        CHECK_EQUAL(parted.pool.run(0).reason, Pool::Rest::idle);
        CHECK_EQUAL(parted.noted, std::string("1111111"));
        CHECK_EQUAL(parted.flow.done(), 4);
        CHECK_EQUAL(parted.last->taken(), 7u);
    }
}

TEST("a part grows while an earlier round is where its lane cannot work") {
    Parted parted(false, 2);  // the stage behind is in another pool
    parted.admit(1);
    parted.admit(3);
    CHECK_EQUAL(parted.pool.run(0).reason, Pool::Rest::idle);
    CHECK_EQUAL(parted.noted, std::string());
    parted.flow.drain();
    CHECK_EQUAL(parted.noted, std::string("13"));
}

TEST("a part grows while a lane is about to leave a stage behind") {
    Parted parted(false);
    CHECK(parted.last->enter());
    parted.admit(3);
    CHECK(parted.pool.step(all_lanes));
    parted.last->leave();
    CHECK_EQUAL(parted.pool.run(0).reason, Pool::Rest::idle);
    CHECK_EQUAL(parted.noted, std::string("3"));
}

CHECK_MAIN
