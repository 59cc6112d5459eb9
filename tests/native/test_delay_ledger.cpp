// The delays of operators, by a simulated clock: a small pipeline runs unchanged, with an operator that
// seems faster, and with one that is faster. The last two have to agree.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "callboard/streams/experiments/delay_ledger.hpp"
#include "check.hpp"

using namespace callboard;

namespace {

constexpr int rounds = 400;

// Operators one behind the other, each on a thread of its own, or some on one thread. A round costs an operator a
// fixed time. At most `window` rounds are on their way.
struct Pipeline {
    std::vector<std::int64_t> costs;
    std::vector<std::size_t> threads;  // of the operators
    bool locked = false;               // all operators exclude each other
    std::size_t window = 8;

    // The time for a round, at the end of a long run. The target seems faster by a part.
    double time_of_a_round(std::size_t target, double part) const {
        const std::size_t members = *std::max_element(threads.begin(), threads.end()) + 1;
        const auto lock_of = locked ? DelayLedger::locked : DelayLedger::free;
        DelayLedger ledger;
        for (std::size_t i = 0; i < members; ++i) ledger.add_member();
        std::vector<std::int64_t> free(members, 0);                     // when threads are
        std::vector<int> done(costs.size(), 0);                         // rounds of operators
        std::vector<std::vector<std::int64_t>> left(costs.size());      // when rounds did
        std::int64_t lock = 0;
        std::int64_t end = 0;
        std::int64_t half = 0;
        double inserted_by_half = 0.0;
        while (done.back() < rounds) {
            // The operator that can begin first, the last of those, as lanes choose.
            std::size_t next = costs.size();
            std::int64_t first = INT64_MAX;
            for (std::size_t i = 0; i < costs.size(); ++i) {
                const auto round = static_cast<std::size_t>(done[i]);
                if (done[i] == rounds || (i > 0 && left[i - 1].size() <= round)) continue;
                if (i == 0 && round >= window && left.back().size() <= round - window) continue;
                std::int64_t ready = std::max(free[threads[i]], locked ? lock : 0);
                if (i > 0) ready = std::max(ready, left[i - 1][round]);
                if (i == 0 && round >= window) ready = std::max(ready, left.back()[round - window]);
                if (ready <= first) first = ready, next = i;
            }
            const auto member = threads[next];
            const auto stop = first + costs[next];
            ledger.worked(member, {first, stop, lock_of, next == target ? part : 0.0, 1.0});
            left[next].push_back(stop);
            std::int64_t now = stop;
            if (locked) lock = stop;
            for (auto owed = static_cast<std::int64_t>(ledger.debt(member)); owed >= 1;
                 owed = static_cast<std::int64_t>(ledger.debt(member))) {
                ledger.paused(member, {now, now + owed, lock_of});
                now += owed;
            }
            free[member] = now;
            if (next == costs.size() - 1 && done[next] == rounds / 2) half = stop, inserted_by_half = ledger.inserted();
            ++done[next];
            end = std::max(end, stop);
        }
        const double wall = static_cast<double>(end - half) - (ledger.inserted() - inserted_by_half);
        return wall / (rounds / 2 - 1);
    }

    Pipeline with(std::size_t target, double part) const {
        Pipeline other = *this;
        other.costs[target] -= static_cast<std::int64_t>(part * static_cast<double>(costs[target]));
        return other;
    }

    // The predicted time of a round by that of one in which the operator is faster indeed: 1.0 is right.
    double predicted_by_real(std::size_t target, double part) const {
        return time_of_a_round(target, part) / with(target, part).time_of_a_round(target, 0.0);
    }
};

bool is_near(double ratio) { return ratio > 0.97 && ratio < 1.03; }

}  // namespace

TEST("a faster bottleneck speeds its pipeline up by as much") {
    const Pipeline pipeline{{100'000, 400'000, 200'000}, {0, 1, 2}};
    CHECK(is_near(pipeline.time_of_a_round(1, 0.0) / 400'000));
    CHECK(is_near(pipeline.time_of_a_round(1, 0.25) / 300'000));
}

TEST("an operator that holds nobody up gains nothing") {
    const Pipeline pipeline{{100'000, 400'000, 200'000}, {0, 1, 2}};
    for (const std::size_t quick : {0, 2})
        for (const double part : {0.2, 0.5, 1.0})
            CHECK(is_near(pipeline.time_of_a_round(quick, part) / 400'000));
}

TEST("the gain ends where the next operator holds the pipeline up") {
    const Pipeline pipeline{{100'000, 400'000, 300'000}, {0, 1, 2}};
    for (const double part : {0.5, 0.8}) CHECK(is_near(pipeline.time_of_a_round(1, part) / 300'000));
}

TEST("operators of one thread gain their shares of its time") {
    const Pipeline pipeline{{100'000, 400'000, 200'000}, {0, 0, 0}};
    for (std::size_t target = 0; target < 3; ++target)
        for (const double part : {0.2, 0.5}) CHECK(is_near(pipeline.predicted_by_real(target, part)));
}

TEST("operators on two threads are predicted as they turn out") {
    const Pipeline pipeline{{100'000, 400'000, 200'000}, {0, 1, 0}};
    for (std::size_t target = 0; target < 3; ++target)
        for (const double part : {0.2, 0.5}) CHECK(is_near(pipeline.predicted_by_real(target, part)));
}

TEST("operators on threads of their own that need one lock gain their shares of all time") {
    const Pipeline pipeline{{100'000, 400'000, 200'000}, {0, 1, 2}, true};
    CHECK(is_near(pipeline.time_of_a_round(0, 0.0) / 700'000));
    for (std::size_t target = 0; target < 3; ++target)
        for (const double part : {0.2, 0.5}) CHECK(is_near(pipeline.predicted_by_real(target, part)));
}

TEST("a target that has released the lock slows down the threads that took it") {
    DelayLedger ledger;
    for (int i = 0; i < 3; ++i) ledger.add_member();
    ledger.worked(0, {0, 1000, DelayLedger::locked, 0.5, 0.25});
    ledger.worked(1, {0, 1000, DelayLedger::locked});
    ledger.worked(2, {0, 1000, DelayLedger::outside});
    CHECK_EQUAL(ledger.debt(2), 125.0);
    CHECK_EQUAL(ledger.inserted(), 500.0);
    CHECK_EQUAL(ledger.debt(1), 375.0);
    CHECK_EQUAL(ledger.debt(0), 0.0);
}

TEST("a debt is the overlap, whichever of two pieces is told first") {
    for (const bool target_first : {true, false}) {
        DelayLedger ledger;
        for (int i = 0; i < 2; ++i) ledger.add_member();
        if (target_first) ledger.worked(0, {100, 300, DelayLedger::free, 0.5});
        ledger.worked(1, {0, 150});
        ledger.worked(1, {250, 500});
        if (!target_first) ledger.worked(0, {100, 300, DelayLedger::free, 0.5});
        CHECK_EQUAL(ledger.debt(1), 50.0);
    }
}

TEST("threads that run the target at once owe for each other") {
    DelayLedger ledger;
    for (int i = 0; i < 3; ++i) ledger.add_member();
    for (std::size_t i = 0; i < 3; ++i) ledger.worked(i, {0, 1000, DelayLedger::free, 0.5});
    for (std::size_t i = 0; i < 3; ++i) CHECK_EQUAL(ledger.debt(i), 1000.0);
    CHECK_EQUAL(ledger.inserted(), 1500.0);
}

TEST("an idle operator owes nothing, and a pause counts as work") {
    DelayLedger ledger;
    for (int i = 0; i < 3; ++i) ledger.add_member();
    ledger.worked(0, {0, 1000, DelayLedger::free, 1.0});
    ledger.paused(1, {500, 700});
    CHECK_EQUAL(ledger.debt(1), 0.0);
    CHECK_EQUAL(ledger.debt(2), 0.0);
}

TEST("clear() forgets all delays that are owed") {
    DelayLedger ledger;
    for (int i = 0; i < 2; ++i) ledger.add_member();
    ledger.worked(0, {0, 1000, DelayLedger::free, 1.0});
    ledger.worked(1, {0, 1000});
    ledger.clear();
    CHECK_EQUAL(ledger.debt(1), 0.0);
    CHECK_EQUAL(ledger.inserted(), 0.0);
    ledger.worked(1, {0, 1000});
    CHECK_EQUAL(ledger.debt(1), 0.0);
}

CHECK_MAIN
