// Which of several sources is at the earliest moment? A tree of losers answers in about log2(sources) comparisons.
//
// Knuth, "The Art of Computer Programming", volume 3, section 5.4.1. Each inner node of a tree holds who lost there
// against the other side's winner; who has won everywhere stands on top. When the winner gets a later time, it meets
// again those whom it has beaten, on its way from its leaf to the top, and nobody else. In a heap, each level
// would take two comparisons. Sources of one time are ordered by their number, so that there is no tie.
//
// For one thread.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "callboard/mailbox/ordered/gate.hpp"

namespace callboard {

template <class Time>
class Tournament {
public:
    // All are at the begin of time.
    explicit Tournament(unsigned players) : players_(players), losers_(new Moment<Time>[players]) {
        const std::unique_ptr<unsigned[]> winners(new unsigned[2 * players]);
        for (unsigned i = 0; i < players; ++i) winners[players + i] = i;
        for (unsigned at = players - 1; at != 0; --at) {
            auto [winner, loser] = std::minmax(winners[2 * at], winners[2 * at + 1]);
            winners[at] = winner;
            losers_[at] = {begin_of_time<Time>, loser};
        }
        first_ = {begin_of_time<Time>, 0};
    }

    // Who is at the earliest moment.
    const Moment<Time>& first() const { return first_; }

    // The first one is at a later time now.
    void move_first(Time time) {
        Moment<Time> winner{time, first_.source};
        for (unsigned at = (players_ + winner.source) / 2; at != 0; at /= 2)
            if (losers_[at] <= winner) std::swap(losers_[at], winner);
        first_ = winner;
    }

private:
    const unsigned players_;
    const std::unique_ptr<Moment<Time>[]> losers_;  // the children of node i are 2i and 2i + 1; the leaves follow
    Moment<Time> first_;
};

}  // namespace callboard
