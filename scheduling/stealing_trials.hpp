// Trials: whether a worker's stealing helps its team, measured alternately with and without it.
//
// Actors that exchange many messages of a few nanoseconds do less on two cores than on one. With each message a
// core waits for cache lines that the other one wrote. If all actors talk to all, no placement helps. So a worker
// that stole compares how many messages its team handles while it takes part and while it keeps apart. It stays
// with the better way, for a longer term each time that this is confirmed. Then it tries the other way again for a
// moment.
//
// It compares nothing in three cases, and takes part. The worker that it stole from was idle at times without its
// help: then the load limits the messages, not the workers. Or that worker keeps apart itself. Or the messages are
// long, so that their cost to others does not matter.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <utility>

#include "callboard/core/atomics.hpp"

namespace callboard {

// The counts until now, as a worker sees them.
struct TeamCounts {
    std::uint64_t handled;  // messages, by all of the team
    std::uint64_t own;      // of these, by this worker
    // About the worker that it stole from last:
    std::uint64_t idles;    // an odd number while it is idle
    bool is_apart;
};

// One worker of a team has a trial at a time: two could not tell their effects apart. For a limited time, so
// that a worker that falls asleep in the middle does not hold up others. Any thread; times in nanoseconds.
class TrialLease {
public:
    // Returns the end of the lease; 0: another has it.
    std::int64_t take(std::int64_t now, std::int64_t length) {
        assert(length > 0);
        std::int64_t end = end_.load(relaxed);
        return end <= now && end_.compare_exchange_strong(end, now + length, relaxed) ? now + length : 0;
    }

    // `end` is what take() returned.
    void give_up(std::int64_t end) { end_.compare_exchange_strong(end, 0, relaxed); }

private:
    Atomic<std::int64_t> end_{0};
};

// The trials of one worker. Its thread calls; any thread may read `is_apart`. Times are in nanoseconds.
class Trials {
public:
    static constexpr std::int64_t settling = 500'000;  // at a term's begin, while actors move
    static constexpr std::int64_t counting = 2'000'000;  // twice the longest dispatch, which counts at its end
    static constexpr std::int64_t trial = settling + counting;
    static constexpr std::int64_t lease_time = 4 * trial;  // for one of each kind, one after the other
    static constexpr std::int64_t first = 8'000'000;  // how long a trial's result holds; four times longer at each
    static constexpr std::int64_t longest = 128'000'000;
    static constexpr std::int64_t long_message = 2'000;
    static constexpr double worth_while = 0.95;  // times the rate without it: going apart costs, too

    Atomic<bool> is_apart{false};

    // The worker stole.
    void note_theft(std::int64_t now) {
        if (due_ == never) begin(Term::part, now, first);
    }

    // Whether to call consider().
    bool is_due(std::int64_t now) const { return now >= due_ || (due_ != never && now >= next_look_); }

    // When due. `lease` is the team's. True: from here on the worker is apart, and was not.
    bool consider(std::int64_t now, const TeamCounts& counts, TrialLease& lease) {
        assert(counts.handled >= then_.handled && counts.own >= then_.own && "counts only grow");
        const bool was_apart = is_apart.load(relaxed);
        if (now < due_) {
            if (was_apart && has_long(now, counts.handled - seen_)) take_part(now, lease);
            else look(now, counts);
            return false;
        }
        if (due_ != ends_) {  // settled
            if (now - due_ > longest && term_ == Term::together) term_ = Term::part;  // it slept: that was another time
            since_ = now;
            then_ = counts;
            due_ = ends_ = std::max(ends_, now + counting);
            look(now, counts);
            return false;
        }
        const double rate = static_cast<double>(counts.handled - then_.handled) / static_cast<double>(now - since_);
        const bool has_short = (counts.own - then_.own) * long_message > static_cast<std::uint64_t>(now - since_);
        const bool is_as_before = counts.idles == then_.idles;  // busy all the time, or idle
        if (was_apart && is_as_before && counts.idles % 2 == 0) {
            rate_apart_ = rate;
            begin(may_try(now, lease) ? Term::together : Term::apart, now, trial);
        } else if (was_apart) {
            stay(Term::part, now);
        } else if (!has_short || counts.is_apart || (is_as_before && counts.idles % 2 == 1)) {
            take_part(now, lease);
        } else if (term_ == Term::together) {
            stay(rate < worth_while * rate_apart_ ? Term::apart : Term::part, now);
        } else if (may_try(now, lease)) {
            begin(Term::alone, now, trial);
        } else {
            take_part(now, lease);
        }
        if (term_ == Term::part || term_ == Term::apart) end_trial(lease);
        return !was_apart && is_apart.load(relaxed);
    }

    // For now, nothing is to be found out.
    void take_part(std::int64_t now, TrialLease& lease) {
        end_trial(lease);
        begin(Term::part, now, first);
    }

private:
    static constexpr std::int64_t never = INT64_MAX;

    // The worker's mode until it considers again: it takes part or keeps apart, or tries to keep apart and then
    // to take part.
    enum class Term : std::uint8_t { part, apart, alone, together };

    void begin(Term term, std::int64_t now, std::int64_t length) {
        assert(length >= settling);
        const bool apart = term == Term::apart || term == Term::alone;
        term_ = term;
        is_apart.store(apart, relaxed);
        due_ = now + settling;
        ends_ = now + length;
        next_look_ = apart ? due_ : never;
    }

    void stay(Term term, std::int64_t now) {
        length_ = term == verdict_ ? std::min(4 * length_, longest) : first;
        assert(length_ >= first && length_ <= longest);
        verdict_ = term;
        begin(term, now, length_);
    }

    // The trial in progress is this worker's, or there is none.
    bool may_try(std::int64_t now, TrialLease& lease) {
        if (now >= lease_end_) lease_end_ = lease.take(now, lease_time);
        return lease_end_ != 0;
    }

    void end_trial(TrialLease& lease) {
        if (lease_end_ != 0) lease.give_up(std::exchange(lease_end_, 0));
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
    std::int64_t since_{0};    // when counting began, and the counts of then
    TeamCounts then_{};
    std::int64_t next_look_{never}, seen_at_{0};
    std::uint64_t seen_{0};    // messages, at the last look
    double rate_apart_{0};     // messages a nanosecond, of all
    Term term_{Term::part};
    Term verdict_{Term::part};      // of the last trial
    std::int64_t length_{first};    // of the term that followed it
    std::int64_t lease_end_{0};     // of the lease that it has or had last; 0: it gave it up
};

}  // namespace callboard
