// The outputs of a join, as numbers of rows: pairs, rows with a partner, rows without one, in the order of the
// sequence.
//
// Rows of a side are numbered as they are kept, from 0 on; so a window is the numbers from begin() to end(). Rows come
// in the order of their times, and each goes through three steps:
//   1. arrive()  By the strict rule, what is too old for it leaves both windows, what was too old first of both.
//   2. give()    Its partners, of the other side's window, from the oldest on.
//   3. keep()    It comes into its own window; by the other rules, what is too old or too many leaves that.
// A row that leaves and has had no partner is an output then, if the kind of join says so. A row for which the second
// and the third are left out is as if it had not been.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "callboard/streams/programs/joins/kernel/rules.hpp"

namespace callboard {

enum class JoinKind : std::uint8_t { inner, left, right, outer, semi, anti };

// Outputs, one after the other: the numbers of a row of each side, or `nobody`.
struct JoinedRows {
    static constexpr std::int64_t nobody = -1;

    std::vector<std::int64_t> of[2];

    std::size_t size() const { return of[0].size(); }
    void add(std::uint32_t side, std::uint64_t number, std::int64_t partner) {
        of[side].push_back(static_cast<std::int64_t>(number));
        of[1 - side].push_back(partner);
    }
    void clear() {
        of[0].clear();
        of[1].clear();
    }
};

template <class Time>
class JoinOutputs {
public:
    // `most` rows are in a window, by the rule of last_rows.
    JoinOutputs(JoinKind kind, JoinRule rule, JoinLengths<Time> within, std::uint64_t most)
        : rule_(rule),
          within_(within),
          most_(most),
          pairs_(kind != JoinKind::semi && kind != JoinKind::anti),
          once_(kind == JoinKind::semi),
          lonely_{kind == JoinKind::left || kind == JoinKind::outer || kind == JoinKind::anti,
                  kind == JoinKind::right || kind == JoinKind::outer} {}

    // No row before `now` comes any more. These throw std::bad_alloc, after which the join is of no use.
    void arrive(Time now) {
        if (rule_ != JoinRule::strict || !(is_over(0, now) || is_over(1, now))) return;
        if (!lonely_[0] && !lonely_[1]) {  // rows leave without an output: in any order
            for (std::uint32_t side : {0, 1})
                while (is_over(side, now)) let_go(side);
            return;
        }
        for (std::uint32_t side; has_next(side); let_go(side)) {
            if (is_over(side, now)) continue;
            side = 1 - side;  // sums of doubles are rounded
            if (!is_over(side, now)) return;
        }
    }

    void give(std::uint32_t side, Time now, std::int64_t partner) {
        assert(static_cast<std::uint64_t>(partner) >= begin(1 - side) && "a partner is in its window");
        assert(static_cast<std::uint64_t>(partner) < end(1 - side) && "a partner is in its window");
        Kept& other = windows_[1 - side][static_cast<std::uint64_t>(partner) - begins_[1 - side]];
        const std::uint64_t own = end(side);
        if (pairs_) add(side, own, partner, std::min(now, other.time));
        else if (once_ && side == 1 && !other.has_partner) add(0, static_cast<std::uint64_t>(partner), nobody, other.time);
        else if (once_ && side == 0 && !is_partner_) add(0, own, nobody, now);
        other.has_partner = is_partner_ = true;
    }

    void keep(std::uint32_t side, Time now) {
        std::deque<Kept>& window = windows_[side];
        assert((rule_ == JoinRule::last_rows || window.empty() || !(now < window.back().time)) && "times do not fall");
        window.push_back({now, is_partner_});
        is_partner_ = false;
        if (rule_ == JoinRule::last_rows) {
            if (window.size() > most_) let_go(side);
        } else if (rule_ == JoinRule::three_step) {
            while (is_over(side, now)) let_go(side);
        }
    }

    // Rows of a side that were in its window when another join of these rules was saved, from this number on; before all
    // others.
    void begin_at(std::uint32_t side, std::uint64_t number) {
        assert(windows_[side].empty() && "no row has come");
        begins_[side] = number;
    }
    void load(std::uint32_t side, Time time, bool has_partner) { windows_[side].push_back({time, has_partner}); }

    // Rows that are in a window, by their numbers.
    Time time_of(std::uint32_t side, std::uint64_t number) const { return windows_[side][number - begins_[side]].time; }
    bool has_partner(std::uint32_t side, std::uint64_t number) const {
        return windows_[side][number - begins_[side]].has_partner;
    }

    void let_all_go() {
        for (std::uint32_t side; has_next(side);) let_go(side);
    }

    std::uint64_t begin(std::uint32_t side) const { return begins_[side]; }
    std::uint64_t end(std::uint32_t side) const { return begins_[side] + windows_[side].size(); }

    // The side whose oldest row is first of both, in the order of the sequence. False: there is none.
    bool has_oldest(std::uint32_t& side) const {
        const std::deque<Kept>&left = windows_[0], &right = windows_[1];
        if (left.empty() && right.empty()) return false;
        side = left.empty() || (!right.empty() && right.front().time < left.front().time);
        return true;
    }
    Time oldest(std::uint32_t side) const { return windows_[side].front().time; }

    JoinedRows rows;  // the caller's to read and to clear
    Time earliest{};  // the time of the oldest row in them, if there is one

private:
    static constexpr std::int64_t nobody = JoinedRows::nobody;

    struct Kept {
        Time time;
        bool has_partner;
    };

    // The side whose oldest row leaves first, whenever that is: if rows of both are kept as long, the oldest of both.
    bool has_next(std::uint32_t& side) const {
        if (!has_oldest(side)) return false;
        const std::uint32_t other = 1 - side;
        if (rule_ == JoinRule::strict && !windows_[other].empty() &&
            ends_before(oldest(other), within_.of[other], oldest(side), within_.of[side]))
            side = other;
        return true;
    }

    bool is_over(std::uint32_t side, Time now) const {
        return !windows_[side].empty() && is_expired(now, oldest(side), within_.of[side]);
    }

    void let_go(std::uint32_t side) {
        assert(!windows_[side].empty());
        const Kept kept = windows_[side].front();
        windows_[side].pop_front();
        const std::uint64_t number = begins_[side]++;
        if (!kept.has_partner && lonely_[side]) add(side, number, nobody, kept.time);
    }

    void add(std::uint32_t side, std::uint64_t number, std::int64_t partner, Time time) {
        earliest = rows.size() == 0 ? time : std::min(earliest, time);
        rows.add(side, number, partner);
    }

    const JoinRule rule_;
    const JoinLengths<Time> within_;
    const std::uint64_t most_;
    const bool pairs_, once_;
    const bool lonely_[2];
    bool is_partner_{false};  // the row that is being taken
    std::deque<Kept> windows_[2];
    std::uint64_t begins_[2]{};
};

}  // namespace callboard
