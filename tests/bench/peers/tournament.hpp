// A tournament (tree of losers) finds which of several sources is at the earliest moment, in about log2(sources)
// comparisons.
//
// Knuth, "The Art of Computer Programming", volume 3, section 5.4.1. Each inner node of the tree holds the source
// that lost there against the other side's winner. The source that has won everywhere is on top. When the winner
// gets a later time, it meets only the sources that it has beaten, on its way from its leaf to the top. In a heap,
// each level would take two comparisons. Sources of one time are ordered by their number, so there are no ties.
//
// For one thread.
#pragma once

#include <algorithm>
#include <memory>
#include <tuple>

#include "callboard/core/atomics.hpp"
#include "gate.hpp"

namespace callboard {

template <class Time>
class Tournament {
public:
    // All are at the begin of time.
    explicit Tournament(unsigned players) : players_(players), nodes_(new Node[players]) {
        const std::unique_ptr<unsigned[]> winners(new unsigned[2 * players]);
        for (unsigned i = 0; i < players; ++i) nodes_[winners[players + i] = i].time = begin_of_time<Time>;
        for (unsigned at = players - 1; at != 0; --at)
            std::tie(winners[at], nodes_[at].loser) = std::minmax(winners[2 * at], winners[2 * at + 1]);
    }

    // The source at the earliest moment.
    Moment<Time> first() const { return {nodes_[first_].time, first_}; }

    // The first one is at a later time now. Returns who is first then.
    Moment<Time> move_first(Time time) {
        nodes_[first_].time = time;
        Moment<Time> winner{time, first_};
        for (unsigned at = (players_ + first_) / 2; at != 0; at /= 2) {
            const Moment<Time> other{nodes_[nodes_[at].loser].time, nodes_[at].loser};
            // Without a branch, which would be mispredicted half of the time.
            const bool wins = winner <= other;
            nodes_[at].loser = wins ? other.source : winner.source;
            winner.source = wins ? winner.source : other.source;
            winner.time = wins ? winner.time : other.time;
        }
        first_ = winner.source;
        return winner;
    }

private:
    // Below node i are nodes 2i and 2i + 1. Below the last ones are the players: player i as node players + i.
    struct alignas(cache_line) Node {
        unsigned loser;  // there
        Time time;       // player i's
    };

    const unsigned players_;
    const std::unique_ptr<Node[]> nodes_;
    unsigned first_ = 0;
};

}  // namespace callboard
