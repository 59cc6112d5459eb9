// Trials, which find out whether a worker's stealing helps its team: they measure with and without it, in turn.
//
// Actors that exchange many messages of a few nanoseconds do less on two cores than on one. With each message a
// core waits for cache lines that the other one wrote. If all actors talk to all, no placement helps. So a worker
// that stole compares the messages that its team handles while it steals freely and while its stealing is throttled.
// It stays with the better mode, for a longer term each time that this is confirmed. Then it tries the other mode
// again for a moment.
//
// In three cases it compares nothing and steals freely. The worker that it stole from was idle at times without its
// help: then the load limits the messages, not the workers. Or that worker is throttled itself. Or the messages are
// long, so that their cost to others does not matter.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <utility>

#include "callboard/core/atomics.hpp"

namespace callboard {

// The present counts, as a worker sees them.
struct TeamCounts {
    std::uint64_t handled;  // messages, by all of the team
    std::uint64_t own;      // of these, by this worker
    // About the worker that it stole from last:
    std::uint64_t idles;    // an odd number while it is idle
    bool is_throttled;
};

// One worker of a team has a trial at a time: two could not tell their effects apart. The lease is for a limited
// time, so that a worker that falls asleep does not hold up others. Any thread; times in nanoseconds.
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

// The trials of one worker. Only its thread calls; any thread may read `is_throttled`. Times are in nanoseconds.
class Trials {
public:
    static constexpr std::int64_t settling = 500'000;  // at the beginning of a term, while actors move
    static constexpr std::int64_t counting = 2'000'000;  // twice the longest dispatch, which counts at its end
    static constexpr std::int64_t trial = settling + counting;
    static constexpr std::int64_t lease_time = 4 * trial;  // for one of each kind, one after the other
    static constexpr std::int64_t first = 8'000'000;  // how long a trial's result holds; four times longer at each
    static constexpr std::int64_t longest = 128'000'000;
    static constexpr std::int64_t long_message = 2'000;
    static constexpr double worth_while = 0.95;  // times the throttled rate: a change of mode costs, too

    Atomic<bool> is_throttled{false};

    // The worker stole.
    void note_theft(std::int64_t now) {
        if (due_ == never) begin(Term::stealing, now, first);
    }

    // Whether to call consider().
    bool is_due(std::int64_t now) const { return now >= due_ || (due_ != never && now >= next_look_); }

    // When due. `lease` is the team's. True: the worker is throttled from here on, and was not before.
    bool consider(std::int64_t now, const TeamCounts& counts, TrialLease& lease) {
        assert(counts.handled >= then_.handled && counts.own >= then_.own && "counts only grow");
        const bool was_throttled = is_throttled.load(relaxed);
        if (now < due_) {
            if (was_throttled && has_long(now, counts.handled - seen_)) steal_freely(now, lease);
            else look(now, counts);
            return false;
        }
        if (due_ != ends_) {  // settled
            if (now - due_ > longest && term_ == Term::try_stealing) term_ = Term::stealing;  // it slept for long
            since_ = now;
            then_ = counts;
            due_ = ends_ = std::max(ends_, now + counting);
            look(now, counts);
            return false;
        }
        const double rate = static_cast<double>(counts.handled - then_.handled) / static_cast<double>(now - since_);
        const bool has_short = (counts.own - then_.own) * long_message > static_cast<std::uint64_t>(now - since_);
        const bool is_as_before = counts.idles == then_.idles;  // busy all the time, or idle
        if (was_throttled && is_as_before && counts.idles % 2 == 0) {
            throttled_rate_ = rate;
            begin(may_try(now, lease) ? Term::try_stealing : Term::throttled, now, trial);
        } else if (was_throttled) {
            stay(Term::stealing, now);
        } else if (!has_short || counts.is_throttled || (is_as_before && counts.idles % 2 == 1)) {
            steal_freely(now, lease);
        } else if (term_ == Term::try_stealing) {
            stay(rate < worth_while * throttled_rate_ ? Term::throttled : Term::stealing, now);
        } else if (may_try(now, lease)) {
            begin(Term::try_throttled, now, trial);
        } else {
            steal_freely(now, lease);
        }
        if (term_ == Term::stealing || term_ == Term::throttled) end_trial(lease);
        return !was_throttled && is_throttled.load(relaxed);
    }

    // There is nothing to find out at present.
    void steal_freely(std::int64_t now, TrialLease& lease) {
        end_trial(lease);
        begin(Term::stealing, now, first);
    }

private:
    static constexpr std::int64_t never = INT64_MAX;

    // The worker's mode until it considers again: it steals freely or is throttled, or tries to be throttled and then
    // to steal.
    enum class Term : std::uint8_t { stealing, throttled, try_throttled, try_stealing };

    void begin(Term term, std::int64_t now, std::int64_t length) {
        assert(length >= settling);
        const bool throttled = term == Term::throttled || term == Term::try_throttled;
        term_ = term;
        is_throttled.store(throttled, relaxed);
        due_ = now + settling;
        ends_ = now + length;
        next_look_ = throttled ? due_ : never;
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

    // While the worker is throttled, the team's messages may become long.
    void look(std::int64_t now, const TeamCounts& counts) {
        if (!is_throttled.load(relaxed)) return;
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
    std::uint64_t seen_{0};     // messages, at the last look
    double throttled_rate_{0};  // messages a nanosecond, of all workers
    Term term_{Term::stealing};
    Term verdict_{Term::stealing};  // of the last trial
    std::int64_t length_{first};    // of the term that followed it
    std::int64_t lease_end_{0};     // of the present or last lease; 0: given up
};

}  // namespace callboard
