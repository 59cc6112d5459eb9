// A pool's index of ready stages, and the number of stages that a choice looks at.
#include <set>

#include "callboard/scheduling/flow/pool.hpp"
#include "callboard/scheduling/flow/ready_index.hpp"
#include "callboard/scheduling/flow/ready_stages.hpp"
#include "check.hpp"
#include "choosers.hpp"
#include "stress.hpp"

using namespace callboard;

namespace {

std::uint32_t first_of(const std::set<std::uint32_t>& places, std::uint32_t from) {
    const auto found = places.lower_bound(from);
    return found == places.end() ? ReadyIndex::none : *found;
}

std::uint32_t last_of(const std::set<std::uint32_t>& places, std::uint32_t end) {
    const auto found = places.lower_bound(end);
    return found == places.begin() ? ReadyIndex::none : *std::prev(found);
}

// A stage of a test: it says how much waits, and counts how often it is asked.
struct Asked final : Stage {
    using Stage::Stage;
    std::int64_t rounds{0};
    static inline int looks{0};

    std::int64_t waiting() const override { return ++looks, rounds; }
    void put(std::uint32_t, std::int64_t, void*) override { ++rounds, announce(); }
    std::int64_t work(RowTotals&, double, std::uint32_t) override { return 0; }
};

struct Nobody final : SinkObserver {
    void round_left(std::int64_t) override {}
    bool is_oldest(std::int64_t) const override { return false; }
    std::int64_t now() const override { return 0; }
};

// A pool without lanes.
struct Choice final : ReadyStages {
    Nobody nobody;
    Stages all;

    // A chain; each row gives one.
    explicit Choice(std::uint32_t count) {
        for (std::uint32_t i = 0; i < count; ++i) {
            all.push_back(std::make_unique<Asked>(Stage::Setup{*this, nobody, i, i, all_lanes, 1}, Work{}));
            if (i != 0) all[i - 1]->connect(*all[i], 0);
            add(*all[i]);
        }
        make_index();
    }
    void something_waits(Stage& stage) override { remember(stage); }
    void anything_waits() override {}
    bool work_behind(const Stage&) override { return false; }

    void put(std::uint32_t place) { all[place]->put(0, 0, nullptr); }
    void take(std::uint32_t place) { --static_cast<Asked&>(*all[place]).rounds; }
};

std::unique_ptr<Chooser> chooser_that_asks() {
    return std::make_unique<ChooseByAsking>(
        [](void*, const std::vector<Stage*>& stages) { return stages.front(); }, nullptr);
}

}  // namespace

TEST("an index finds the places that are in it, in both directions, whatever its size") {
    for (std::uint32_t size : {1u, 63u, 64u, 65u, 4096u, 4097u, 10000u, 262145u}) {
        ReadyIndex index;
        index.make_room(size);
        std::set<std::uint32_t> places;
        stress::Random random(size);
        for (int i = 0; i < 4000; ++i) {
            const auto place = random.below(size);
            if (random.below(3) != 0) {
                index.set(place);
                places.insert(place);
            } else if (places.erase(place) != 0) {
                CHECK(!index.clear(place));  // nobody else was there
            }
            const auto from = random.below(size);
            CHECK_EQUAL(index.has(from), places.count(from) != 0);
            CHECK_EQUAL(index.first(from), first_of(places, from));
            CHECK_EQUAL(index.last(from), last_of(places, from));
            CHECK_EQUAL(index.last(size), last_of(places, size));
        }
        while (!places.empty()) {
            CHECK_EQUAL(index.first(), *places.begin());
            CHECK(!index.clear(*places.begin()));
            places.erase(places.begin());
        }
        CHECK_EQUAL(index.first(), ReadyIndex::none);
        CHECK_EQUAL(index.last(size), ReadyIndex::none);
    }
}

TEST("a choice looks at the stages that are ready, not at those that exist") {
    for (std::uint64_t which = 0; which < 6; ++which) {
        int most[2] = {0, 0};
        for (int large : {0, 1}) {
            const std::uint32_t count = large ? 100'000 : 100;
            Choice choice(count);
            auto chooser = which == 5 ? chooser_that_asks() : any_chooser(which);
            chooser->prepare(choice.all);
            for (auto place : {std::uint32_t{0}, count / 2, count - 1}) choice.put(place);
            for (int i = 0; i < 1000; ++i) {
                Asked::looks = 0;
                CHECK(chooser->choose(choice, all_lanes, i, nullptr) != nullptr);
                if (Asked::looks > most[large]) most[large] = Asked::looks;
            }
        }
        CHECK_EQUAL(most[0], most[1]);
        CHECK(most[1] <= 12);  // of each of the three, what waits for it and for the next
    }
}

TEST("a lane follows its rounds, and others keep away from them while there is more to do") {
    Choice choice(100);
    const auto latest = [&](int last) {
        const Stage* stage = choice.latest(all_lanes, 0, last < 0 ? nullptr : choice.all[last].get());
        return stage == nullptr ? -1 : static_cast<int>(stage->place);
    };
    CHECK_EQUAL(latest(3), -1);
    choice.put(40);
    choice.put(80);
    CHECK_EQUAL(latest(-1), 80);
    CHECK_EQUAL(latest(39), 40);  // its own are there
    CHECK_EQUAL(latest(40), 80);  // they are gone
    CHECK(choice.all[79]->enter());
    CHECK_EQUAL(latest(-1), 40);
    CHECK_EQUAL(latest(79), 80);
    CHECK(choice.all[39]->enter());
    CHECK_EQUAL(latest(-1), 80);  // better than nothing
    CHECK(choice.all[80]->enter());
    CHECK_EQUAL(latest(79), 40);  // one lane only may be there
}

TEST("the paper's rule takes the latest stage that is schedulable, whatever the lane worked at") {
    Choice choice(100);
    ChooseLatest chooser(false);
    const auto latest = [&](int last) {
        const Stage* stage = chooser.choose(choice, all_lanes, 0, choice.all[last].get());
        return stage == nullptr ? -1 : static_cast<int>(stage->place);
    };
    CHECK_EQUAL(latest(39), -1);
    choice.put(40);
    choice.put(80);
    CHECK(choice.all[79]->enter());
    CHECK_EQUAL(latest(39), 80);
    CHECK(choice.all[80]->enter());
    CHECK_EQUAL(latest(39), 40);  // one lane only may be at the latest
    CHECK(choice.all[40]->enter());
    CHECK_EQUAL(latest(39), -1);
}

TEST("a lane that finds an empty stage looks there once") {
    Choice choice(1000);
    for (std::uint32_t place = 0; place < 1000; ++place) choice.put(place);
    for (std::uint32_t place = 0; place < 1000; ++place)
        if (place != 500) choice.take(place);
    CHECK_EQUAL(choice.latest(all_lanes, 0, nullptr), choice.all[500].get());
    Asked::looks = 0;
    CHECK_EQUAL(choice.latest(all_lanes, 0, nullptr), choice.all[500].get());
    CHECK_EQUAL(Asked::looks, 1);
}

TEST("for a lane that may not work, no stage is asked") {
    TimeSlices slices;
    Pool pool(slices, nullptr);
    Nobody nobody;
    Stages all;
    for (std::uint32_t i = 0; i < 100; ++i) {
        all.push_back(std::make_unique<Asked>(Stage::Setup{pool, nobody, i, i, all_lanes, 1}, Work{}));
        pool.add(*all[i]);
    }
    pool.finish(all);
    int woken[2] = {0, 0};
    for (int& count : woken) pool.add_lane(all_lanes, [](void* lane) { ++*static_cast<int*>(lane); }, &count);
    pool.set_active(1);
    for (auto& stage : all) stage->put(0, 0, nullptr);
    CHECK_EQUAL(woken[0], 1);
    Asked::looks = 0;
    pool.set_active(1);
    CHECK_EQUAL(Asked::looks, 0);
    pool.set_active(3);
    CHECK(Asked::looks >= 100);
    CHECK_EQUAL(woken[1], 0);  // a round at each stage is for the lane that is awake
}

CHECK_MAIN
