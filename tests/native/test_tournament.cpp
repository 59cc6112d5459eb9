// The tournament and the counts behind gates, each beside the simplest way to the same answer.
#include <algorithm>
#include <vector>

#include "../bench/peers/read_counts.hpp"
#include "../bench/peers/tournament.hpp"
#include "stress.hpp"

using callboard::Moment;

TEST("the first of a tournament is at the earliest time, and of these the one with the lowest number") {
    for (unsigned players = 1; players < 20; ++players) {
        stress::Random random(players);
        callboard::Tournament<std::int64_t> tournament(players);
        std::vector<std::int64_t> times(players, callboard::begin_of_time<std::int64_t>);
        for (int step = 0; step < 2000; ++step) {
            const auto first = std::min_element(times.begin(), times.end());
            CHECK_EQUAL(tournament.first().source, static_cast<unsigned>(first - times.begin()));
            CHECK_EQUAL(tournament.first().time, *first);
            *first = std::max<std::int64_t>(*first, step / players) + random.below(4);
            tournament.move_first(*first);
        }
    }
}

TEST("moments are ordered by time and then by source") {
    const std::vector<Moment<double>> sorted{{-1, 3}, {0, 0}, {0, 1}, {0.5, 0}};
    for (std::size_t i = 0; i < sorted.size(); ++i)
        for (std::size_t j = 0; j < sorted.size(); ++j) CHECK_EQUAL(sorted[i] <= sorted[j], i <= j);
}

TEST("a source may go a window beyond its slowest reader") {
    callboard::ReadCounts counts(20, 3, 5);
    for (unsigned source = 0; source < 20; ++source) CHECK_EQUAL(counts.limit(source), 5);
    for (unsigned source = 0; source < 20; ++source)
        for (unsigned reader = 0; reader < 3; ++reader) counts.store(reader, source, 10 * source + reader);
    for (unsigned source = 0; source < 20; ++source) CHECK_EQUAL(counts.limit(source), 10 * source + 5);
    counts.store(0, 7, 99);
    CHECK_EQUAL(counts.limit(7), 76);
    CHECK_EQUAL(counts.limit(6), 65);
}

CHECK_MAIN
