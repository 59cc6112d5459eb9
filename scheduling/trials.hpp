// Whether a worker that takes others' work is of use to them: measured, by turns.
//
// Actors that tell one another much, in messages of a few nanoseconds, do less on two cores than on one: with
// each message a core waits for lines of memory that the other one wrote. Where everybody talks to everybody, no
// placement mends that. So a worker that stole compares how many messages its team handles while it takes part
// and while it keeps apart. It stays with what is better, for a longer term each time that this is confirmed, and
// then tries the other way again for a moment.
//
// Nothing is compared where that would tell nothing: when the one that it stole from had time to rest without its
// help (then it is the load that says how many messages there are, not the workers), or when the thief's own messages
// are long ones, beside which what they cost the others is nothing. Then it takes part.
#pragma once

#include <algorithm>
#include <cstdint>

#include "callboard/core/atomics.hpp"

namespace callboard {

// What has happened until now, as a worker sees it.
struct TeamCounts {
    std::uint64_t handled;  // messages, by all of the team
    std::uint64_t own;      // of these, by this worker
    std::uint64_t rests;    // of the one that it stole from
};

// The trials of one worker. Its thread calls; any thread may read `is_apart`. Times are in nanoseconds.
class Trials {
public:
    static constexpr std::int64_t settling = 300'000;  // at a term's begin, while actors move
    static constexpr std::int64_t trial = 1'300'000;   // the term of one
    static constexpr std::int64_t first = 8'000'000;   // of what a trial said
    static constexpr std::int64_t longest = 128'000'000;
    static constexpr std::int64_t long_message = 2'000;
    static constexpr double worth_while = 0.95;  // so much of the rate without it: going apart costs, too

    Atomic<bool> is_apart{false};

    // The worker stole.
    void note_theft(std::int64_t now) {
        if (due_ == never) begin(false, now, first);
    }

    bool is_due(std::int64_t now) const { return now >= due_; }

    // When due. True: from here on the worker is apart, and was not.
    bool consider(std::int64_t now, const TeamCounts& counts) {
        if (due_ != ends_) {  // settled: what counts begins
            since_ = now;
            then_ = counts;
            due_ = ends_ = std::max(ends_, now + trial - settling);  // it may have slept
            return false;
        }
        const bool was_apart = is_apart.load(relaxed);
        const double spent = static_cast<double>(now - since_);
        const double rate = static_cast<double>(counts.handled - then_.handled) / spent;
        const bool has_short = static_cast<double>(counts.own - then_.own) * long_message > spent;
        if (was_apart && counts.rests == then_.rests) {
            rate_apart_ = rate;
            in_trial_ = true;
            begin(false, now, trial);
        } else if (was_apart || !has_short) {
            stay(false, now);
        } else if (in_trial_) {
            stay(rate < worth_while * rate_apart_, now);
        } else {
            begin(true, now, trial);
        }
        return !was_apart && is_apart.load(relaxed);
    }

private:
    static constexpr std::int64_t never = INT64_MAX;

    void begin(bool apart, std::int64_t now, std::int64_t length) {
        is_apart.store(apart, relaxed);
        due_ = now + settling;
        ends_ = now + length;
    }

    void stay(bool apart, std::int64_t now) {
        term_ = apart == verdict_ ? std::min(4 * term_, longest) : first;
        verdict_ = apart;
        in_trial_ = false;
        begin(apart, now, term_);
    }

    std::int64_t due_{never};  // when there is something to consider
    std::int64_t ends_{0};     // of the term
    std::int64_t since_{0};    // when counting began
    TeamCounts then_{};
    double rate_apart_{0};     // messages a nanosecond, of all
    bool in_trial_{false};     // of taking part, after a term apart
    bool verdict_{false};      // of the last trial
    std::int64_t term_{first};  // four times longer each time that the verdict is the same
};

}  // namespace callboard
