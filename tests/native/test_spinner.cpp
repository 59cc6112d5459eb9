// Spinning before a sleep, on a simulated processor and clock.
#include "callboard/core/threads/spinner.hpp"
#include "check.hpp"

namespace {

struct Fake {
    static inline std::int64_t time = 0, yield_takes = 500;
    static inline int pauses = 0, yields = 0;

    static std::int64_t now() { return time; }
    static void pause() { time += 25, ++pauses; }
    static void yield() { time += yield_takes, ++yields; }
    static void reset() { pauses = yields = 0; }
};

using Spinner = callboard::BasicSpinner<Fake>;
constexpr std::int64_t patience = 15'000;

// Waits for what happens at the first yield: the other thread is on this core.
bool wait_for_a_yield(Spinner& spinner) {
    Fake::reset();
    return spinner.wait_until([] { return Fake::yields != 0; }, patience);
}

// Waits for what happens after a few pauses: the other thread is on another core.
bool wait_for_a_moment(Spinner& spinner) {
    Fake::reset();
    const std::int64_t begin = Fake::time;
    return spinner.wait_until([begin] { return Fake::time - begin >= 500; }, patience);
}

bool wait_unsuccessfully(Spinner& spinner) {
    Fake::reset();
    return spinner.wait_until([] { return false; }, patience);
}

}  // namespace

TEST("a condition that holds already takes neither a pause nor a yield") {
    Spinner spinner;
    Fake::reset();
    CHECK(spinner.wait_until([] { return true; }, patience));
    CHECK_EQUAL(Fake::pauses + Fake::yields, 0);
}

TEST("a condition that comes to hold within the first look takes no yield, time after time") {
    Spinner spinner;
    for (int i = 0; i < 100; ++i) {
        CHECK(wait_for_a_moment(spinner));
        CHECK_EQUAL(Fake::yields, 0);
    }
}

TEST("pauses that did not help four times are tried again once in sixteen") {
    Spinner spinner;
    int looked = 0;
    for (int i = 0; i < 160; ++i) {
        CHECK(wait_for_a_yield(spinner));
        CHECK_EQUAL(Fake::yields, 1);
        looked += Fake::pauses != 0;
    }
    CHECK_EQUAL(looked, 4 + 9);
}

TEST("waits begin with pauses again after pauses have helped again") {
    Spinner spinner;
    for (int i = 0; i < 5; ++i) CHECK(wait_for_a_yield(spinner));
    for (int i = 0; i < 16; ++i) wait_for_a_moment(spinner);
    for (int i = 0; i < 100; ++i) {
        CHECK(wait_for_a_moment(spinner));
        CHECK_EQUAL(Fake::yields, 0);
    }
}

TEST("an unsuccessful wait ends with its patience") {
    Spinner spinner;
    for (int i = 0; i < 20; ++i) {
        const std::int64_t begin = Fake::time;
        CHECK(!wait_unsuccessfully(spinner));
        CHECK(Fake::time - begin >= patience);
        CHECK(Fake::time - begin < patience + 1'000);
    }
}

TEST("on a busy machine a thread hardly ever yields, and on an idle one it does again") {
    constexpr std::int64_t second = 1'000'000'000;
    Spinner spinner;
    Fake::yield_takes = 4'000'000;
    int yields = 0;
    const std::int64_t begin = Fake::time;
    while (Fake::time - begin < 1000 * second) {
        wait_unsuccessfully(spinner);
        yields += Fake::yields;
        Fake::time += 5'000'000;
    }
    CHECK(yields >= 15);  // once a minute
    CHECK(yields <= 25);  // seven times in the first two minutes
    Fake::yield_takes = 500;
    Fake::time += 64 * second;
    for (int i = 0; i < 100; ++i) CHECK(wait_for_a_yield(spinner));
    Fake::time += 256 * second;  // long ago: the next time is the first
    Fake::yield_takes = 4'000'000;
    wait_unsuccessfully(spinner);
    Fake::yield_takes = 500;
    Fake::time += second;
    CHECK(wait_for_a_yield(spinner));
}

TEST("a thread that does not yield still looks in pauses where they help") {
    Spinner spinner;
    Fake::yield_takes = 4'000'000;
    wait_unsuccessfully(spinner);
    for (int i = 0; i < 16; ++i) wait_for_a_moment(spinner);
    for (int i = 0; i < 100; ++i) CHECK(wait_for_a_moment(spinner));
    Fake::yield_takes = 500;
}

CHECK_MAIN
