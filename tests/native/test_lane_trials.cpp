#include "callboard/scheduling/flow/lane_trials.hpp"

#include "check.hpp"

using namespace callboard;

namespace {

constexpr std::int64_t time_slice_ns = 500'000;

// A stage with two lanes, each of which does so many rows in a slice.
struct Lanes {
    LaneTrials trials{time_slice_ns};
    std::int64_t now = 1;
    std::uint64_t alone = 5'000, beside = 4'000;
    bool meet = true;  // lanes are beside each other, if they may
    int raised = 0;

    // Returns how many slices there was one lane.
    int live(int slices) {
        int found = 0;
        for (int i = 0; i < slices; ++i) {
            now += time_slice_ns;
            const bool one = trials.is_for_one();
            found += one;
            for (int lane = 0; lane < (one ? 1 : 2); ++lane) {
                const std::uint32_t lanes = one || !meet ? 1 : 2;
                // Now and then a lane is interrupted.
                const std::int64_t spent = i % 5 == 2 ? 9 * time_slice_ns : time_slice_ns;
                raised += trials.note({now, spent, lanes == 1 ? alone : beside, lanes, lanes});
            }
        }
        return found;
    }
};

}  // namespace

TEST("where two lanes do more than one there are two, but for trials ever more seldom") {
    Lanes lanes;
    const int at_first = lanes.live(200);
    CHECK(at_first > 0 && at_first <= 40);
    const int later = lanes.live(2'000);
    CHECK(later > 0 && later <= 60);
    CHECK(lanes.raised > 1);
}

TEST("where two lanes do less than one there is one, but for trials ever more seldom") {
    Lanes lanes;
    lanes.beside = 2'000;
    CHECK(200 - lanes.live(200) <= 60);
    CHECK(2'000 - lanes.live(2'000) <= 60);
}

TEST("rows that become long have all lanes") {
    Lanes lanes;
    lanes.beside = 2'000;
    lanes.live(200);
    lanes.alone = 100;
    lanes.beside = 40;
    lanes.live(2'000);
    CHECK_EQUAL(lanes.live(2'000), 0);
}

TEST("a change of the better mode is noticed") {
    Lanes lanes;
    lanes.live(3'000);
    lanes.beside = 2'000;
    lanes.live(1'200);
    CHECK(lanes.live(1'000) >= 900);
    lanes.beside = 4'000;
    lanes.live(1'200);
    CHECK(lanes.live(1'000) <= 100);
}

TEST("lanes that are never beside each other try nothing") {
    Lanes lanes;
    lanes.meet = false;
    CHECK_EQUAL(lanes.live(5'000), 0);
}

TEST("a lane that took no rows is not counted") {
    LaneTrials trials(time_slice_ns);
    for (std::int64_t now = 1; now < 1'000 * time_slice_ns; now += time_slice_ns) CHECK(!trials.note({now, 5, 0, 2, 2}));
    CHECK(!trials.is_for_one());
}

CHECK_MAIN
