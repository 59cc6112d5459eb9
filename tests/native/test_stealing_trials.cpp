#include "callboard/scheduling/stealing_trials.hpp"
#include "check.hpp"

using namespace callboard;

namespace {

// A worker whose team handles so many messages a millisecond, its own share and by whom it stole from alone.
struct Machine {
    Trials trials;
    TrialLease own_lease, *lease = &own_lease;
    std::int64_t now = 1;
    TeamCounts counts{0, 0, 0, false};
    std::uint64_t together = 20'000, alone = 10'000, own = 10'000;  // messages a millisecond
    bool partner_idles = false;
    int given_back = 0;

    bool is_throttled() const { return trials.is_throttled.load(relaxed); }

    // Milliseconds that it was throttled.
    int live(int milliseconds) {
        int throttled = 0;
        for (int i = 0; i < 10 * milliseconds; ++i) {
            now += 100'000;
            throttled += is_throttled();
            counts.handled += (is_throttled() ? alone : together) / 10;
            counts.own += is_throttled() ? 0 : own / 10;
            counts.idles += partner_idles ? 2 : 0;
            if (trials.is_due(now)) given_back += trials.consider(now, counts, *lease);
        }
        return throttled / 10;
    }
};

}  // namespace

TEST("nothing is tried before the first theft") {
    Machine machine;
    CHECK_EQUAL(machine.live(10'000), 0);
    CHECK_EQUAL(machine.given_back, 0);
}

TEST("a worker whose help is worth a second one takes part, but for trials ever more seldom") {
    Machine machine;
    machine.trials.note_theft(machine.now);
    const int at_first = machine.live(100);
    CHECK(at_first > 0 && at_first <= 25);
    const int later = machine.live(1'000);
    CHECK(later > 0 && later <= 40);
    CHECK(!machine.is_throttled() || machine.given_back > 1);
}

TEST("a worker whose help costs more than it brings is throttled, except in ever rarer trials") {
    Machine machine;
    machine.together = 7'000;
    machine.trials.note_theft(machine.now);
    CHECK(100 - machine.live(100) <= 35);
    CHECK(1'000 - machine.live(1'000) <= 50);
}

TEST("a better mode is found within a term, in both directions") {
    Machine machine;
    machine.together = 7'000;
    machine.trials.note_theft(machine.now);
    machine.live(1'000);
    machine.together = 20'000;
    machine.live(150);
    CHECK(machine.live(300) <= 20);
    machine.together = 7'000;
    machine.live(150);
    CHECK(300 - machine.live(300) <= 20);
}

TEST("a worker that slept through a term counts for as long all the same") {
    Machine machine;
    machine.together = 7'000;
    machine.trials.note_theft(machine.now);
    machine.now += 50 * Trials::first;
    CHECK(!machine.trials.consider(machine.now, machine.counts, *machine.lease));
    CHECK(!machine.trials.is_due(machine.now + (Trials::trial - Trials::settling) / 2));
    CHECK(100 - machine.live(100) <= 35);
}

TEST("with long messages a worker takes part, and does not even try the other way") {
    Machine machine;
    machine.together = 700;
    machine.own = 400;
    machine.trials.note_theft(machine.now);
    CHECK_EQUAL(machine.live(1'000), 0);
}

TEST("where the others are idle by themselves, the load says how much is done: a worker takes part") {
    Machine machine;
    machine.together = 5'000;
    machine.alone = 6'000;  // more came just then
    machine.partner_idles = true;
    machine.trials.note_theft(machine.now);
    CHECK(machine.live(1'000) <= 50);
}

TEST("a worker whose partner is throttled, or idle, does not leave its work to it") {
    for (bool throttled : {false, true}) {
        Machine machine;
        machine.together = machine.own = 10'000;  // it does all of it
        machine.counts.idles = throttled ? 2 : 1;
        machine.counts.is_throttled = throttled;
        machine.trials.note_theft(machine.now);
        CHECK_EQUAL(machine.live(1'000), 0);
    }
}

TEST("a throttled worker steals again when the messages become long") {
    Machine machine;
    machine.together = 7'000;
    machine.trials.note_theft(machine.now);
    machine.live(1'000);
    machine.together = machine.alone = 100;
    machine.own = 50;
    CHECK(machine.live(100) <= 10);
}

TEST("of two workers one tries at a time, and both get to it") {
    Machine one, other;
    other.lease = one.lease;
    one.trials.note_theft(one.now);
    other.trials.note_theft(other.now);
    for (int i = 0; i < 1'000; ++i) {
        one.live(1);
        other.live(1);
        CHECK(!one.is_throttled() || !other.is_throttled());
    }
    CHECK(one.given_back > 1);
    CHECK(other.given_back > 1);
}

TEST("one that sleeps in the middle of a trial holds nobody up") {
    Machine one, other;
    other.lease = one.lease;
    one.trials.note_theft(one.now);
    while (!one.is_throttled()) one.live(1);
    other.now = one.now;
    other.trials.note_theft(other.now);
    other.live(100);
    CHECK(other.given_back > 1);
}

TEST("one that breaks a trial off lets others try") {
    Machine one;
    one.trials.note_theft(one.now);
    while (!one.is_throttled()) one.live(1);
    CHECK_EQUAL(one.lease->take(one.now, 1), 0);
    one.trials.steal_freely(one.now, *one.lease);
    CHECK(one.lease->take(one.now, 1) != 0);
}

CHECK_MAIN
