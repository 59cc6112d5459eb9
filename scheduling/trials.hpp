// Whether a worker that takes others' work is of use to them: measured, by turns.
//
// Actors that tell one another much, in messages of a few nanoseconds, do less on two cores than on one: with
// each message a core waits for lines of memory that the other one wrote. Where everybody talks to everybody, no
// placement mends that. So a worker that stole compares how many messages its team handles while it takes part
// and while it keeps apart. It stays with what is better, for a longer term each time that this is confirmed, and
// then tries the other way again for a moment.
//
// Nothing is compared where that would tell nothing: when the one that it stole from had time to rest without its
// help (then it is the load that says how many messages there are, not the workers), or is apart itself, or when the
// messages are long ones, beside which what they cost the others is nothing. Then it takes part.
#pragma once

#include <algorithm>
#include <cstdint>

#include "callboard/core/atomics.hpp"

namespace callboard {

// What has happened until now, as a worker sees it.
struct TeamCounts {
    std::uint64_t handled;  // messages, by all of the team
    std::uint64_t own;      // of these, by this worker
    // Of the one that it stole from last:
    std::uint64_t rests;    // an odd number while it rests
    bool is_apart;
};

// The trials of one worker. Its thread calls; any thread may read `is_apart`. Times are in nanoseconds.
class Trials {
public:
    static constexpr std::int64_t settling = 500'000;  // at a term's begin, while actors move
    static constexpr std::int64_t counting = 2'000'000;  // twice the longest dispatch, which counts at its end
    static constexpr std::int64_t trial = settling + counting;
    static constexpr std::int64_t first = 8'000'000;  // of what a trial said, and four times longer at each further one
    static constexpr std::int64_t longest = 128'000'000;
    static constexpr std::int64_t long_message = 2'000;
    static constexpr double worth_while = 0.95;  // so much of the rate without it: going apart costs, too

    Atomic<bool> is_apart{false};

    // The worker stole.
    void note_theft(std::int64_t now) {
        if (due_ == never) begin(false, now, first);
    }

    // Whether to call consider().
    bool is_due(std::int64_t now) const { return now >= due_ || (due_ != never && now >= next_look_); }

    // When due. True: from here on the worker is apart, and was not.
    bool consider(std::int64_t now, const TeamCounts& counts) {
        const bool was_apart = is_apart.load(relaxed);
        if (now < due_) {
            if (was_apart && has_long(now, counts.handled - seen_)) take_part(now);
            else look(now, counts);
            return false;
        }
        if (due_ != ends_) {  // settled
            if (now - due_ > longest) in_trial_ = false;  // it slept, and what it knew is of another time
            since_ = now;
            then_ = counts;
            due_ = ends_ = std::max(ends_, now + counting);
            look(now, counts);
            return false;
        }
        const double rate = static_cast<double>(counts.handled - then_.handled) / static_cast<double>(now - since_);
        const bool has_short = (counts.own - then_.own) * long_message > static_cast<std::uint64_t>(now - since_);
        const bool is_as_before = counts.rests == then_.rests;  // busy all the time, or at rest
        if (was_apart && is_as_before && counts.rests % 2 == 0) {
            rate_apart_ = rate;
            in_trial_ = true;
            begin(false, now, trial);
        } else if (was_apart) {
            stay(false, now);
        } else if (!has_short || counts.is_apart || (is_as_before && counts.rests % 2 == 1)) {
            take_part(now);
        } else if (in_trial_) {
            stay(rate < worth_while * rate_apart_, now);
        } else {
            begin(true, now, trial);
        }
        return !was_apart && is_apart.load(relaxed);
    }

    // For now, nothing is to be found out.
    void take_part(std::int64_t now) {
        in_trial_ = false;
        begin(false, now, first);
    }

private:
    static constexpr std::int64_t never = INT64_MAX;

    void begin(bool apart, std::int64_t now, std::int64_t length) {
        is_apart.store(apart, relaxed);
        due_ = now + settling;
        ends_ = now + length;
        next_look_ = apart ? due_ : never;
    }

    void stay(bool apart, std::int64_t now) {
        term_ = apart == verdict_ ? std::min(4 * term_, longest) : first;
        verdict_ = apart;
        in_trial_ = false;
        begin(apart, now, term_);
    }

    // While it is apart, all of the team's messages may become long ones.
    void look(std::int64_t now, const TeamCounts& counts) {
        if (!is_apart.load(relaxed)) return;
        seen_ = counts.handled;
        seen_at_ = now;
        next_look_ = now + counting;
    }
    bool has_long(std::int64_t now, std::uint64_t handled) const {
        return handled * long_message < static_cast<std::uint64_t>(now - seen_at_);
    }

    std::int64_t due_{never};  // when the term is settled, and then when it ends
    std::int64_t ends_{0};
    std::int64_t since_{0};    // when counting began, and what there was then
    TeamCounts then_{};
    std::int64_t next_look_{never}, seen_at_{0};
    std::uint64_t seen_{0};    // messages, at the last look
    double rate_apart_{0};     // messages a nanosecond, of all
    bool in_trial_{false};     // of taking part, after a term apart
    bool verdict_{false};      // of the last trial
    std::int64_t term_{first};
};

}  // namespace callboard
