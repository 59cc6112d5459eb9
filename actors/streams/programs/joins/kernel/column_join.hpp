// The outputs of a join whose partners were found, as numbers of rows: pairs, rows with a partner, rows without one, in
// the order of the sequence.
//
// Rows of a side are numbered as they are kept, from 0 on; so a window is the numbers from begin() to end(). Rows come
// in the order of their times, and each goes through three steps:
//   1. arrive()  By the strict rule, rows that are too old for it leave both windows, the first expired one first.
//   2. give()    Its partners, of the other side's window, from the oldest on.
//   3. keep()    It comes into its own window; by the other rules, rows that are too old or too many leave that.
// A row that leaves without having had a partner is an output then, if the kind of join says so. A row for which the
// second and the third step are left out is as if it had not come.
//
// Times are a column of 64-bit integers or of doubles, and `const void*` points to such: ColumnJoin is for callers that
// do not know which. One thread at a time. It waits for nobody.
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

class ColumnJoin {
public:
    virtual ~ColumnJoin() = default;

    // Takes rows in their order, and the matches of all rows from there on, in which the first of them has the number
    // `first`. Returns how many are matches of these rows. Throws std::bad_alloc, as all of these do, and then the join
    // is of no use.
    virtual std::size_t take_many(std::size_t first, std::size_t rows, const std::uint8_t* sides, const void* times,
                                  const JoinMatch* matches, std::size_t count) = 0;

    // The same for one row whose partners the caller finds between the two steps, in the other side's window. The
    // first may be said of any time which all rows that come have come to.
    virtual void arrive(const void* time) = 0;
    virtual void take(std::uint8_t side, const void* time, const std::int64_t* partners, std::size_t count) = 0;

    virtual void let_all_go() = 0;

    // Saves the rows of a window, and whether they have had a partner, into arrays; loads them into a join without
    // rows, after begin_at() with the number of the first.
    virtual void save(std::uint32_t side, void* times, std::uint8_t* partners) const = 0;
    virtual void begin_at(std::uint32_t side, std::uint64_t number) = 0;
    virtual void load(std::uint32_t side, const void* times, const std::uint8_t* partners, std::size_t rows) = 0;

    virtual std::uint64_t begin(std::uint32_t side) const = 0;
    virtual std::uint64_t end(std::uint32_t side) const = 0;

    // The time of the oldest row in a window; false: there is none. And that of the oldest row of the outputs.
    virtual bool has_oldest(void* time) const = 0;
    virtual void earliest(void* time) const = 0;
    virtual JoinedRows& outputs() = 0;
};

template <class Time>
class ColumnJoinOf final : public ColumnJoin {
public:
    // `most` rows are in a window, by the rule of last_rows.
    ColumnJoinOf(JoinKind kind, JoinRule rule, JoinLengths<Time> within, std::uint64_t most)
        : rule_(rule),
          within_(within),
          most_(most),
          pairs_(kind != JoinKind::semi && kind != JoinKind::anti),
          once_(kind == JoinKind::semi),
          gives_unmatched_{kind == JoinKind::left || kind == JoinKind::outer || kind == JoinKind::anti,
                           kind == JoinKind::right || kind == JoinKind::outer} {}

    std::size_t take_many(std::size_t first, std::size_t rows, const std::uint8_t* sides, const void* times,
                          const JoinMatch* matches, std::size_t count) override {
        std::size_t at = 0;
        for (std::size_t row = 0; row < rows; ++row) {
            const Time now = static_cast<const Time*>(times)[row];
            come_to(now);
            for (; at < count && matches[at].row == first + row; ++at)
                give(sides[row], now, static_cast<std::int64_t>(matches[at].partner));
            keep(sides[row], now);
        }
        assert((at == count || matches[at].row >= first + rows) && "matches are in the order of rows");
        return at;
    }

    void arrive(const void* time) override { come_to(*static_cast<const Time*>(time)); }

    void take(std::uint8_t side, const void* time, const std::int64_t* partners, std::size_t count) override {
        const Time now = *static_cast<const Time*>(time);
        for (std::size_t i = 0; i < count; ++i) give(side, now, partners[i]);
        keep(side, now);
    }

    void let_all_go() override {
        for (std::uint32_t side; find_next(side);) let_go(side);
    }

    void save(std::uint32_t side, void* times, std::uint8_t* partners) const override {
        std::size_t row = 0;
        for (const Kept& kept : windows_[side]) {
            static_cast<Time*>(times)[row] = kept.time;
            partners[row++] = kept.has_partner;
        }
    }
    void begin_at(std::uint32_t side, std::uint64_t number) override {
        assert(windows_[side].empty() && "no row has come");
        begins_[side] = number;
    }
    void load(std::uint32_t side, const void* times, const std::uint8_t* partners, std::size_t rows) override {
        for (std::size_t row = 0; row < rows; ++row)
            windows_[side].push_back({static_cast<const Time*>(times)[row], partners[row] != 0});
    }

    std::uint64_t begin(std::uint32_t side) const override { return begins_[side]; }
    std::uint64_t end(std::uint32_t side) const override { return begins_[side] + windows_[side].size(); }

    bool has_oldest(void* time) const override {
        std::uint32_t side;
        if (!find_oldest(side)) return false;
        *static_cast<Time*>(time) = oldest(side);
        return true;
    }
    void earliest(void* time) const override { *static_cast<Time*>(time) = earliest_; }
    JoinedRows& outputs() override { return rows_; }

private:
    static constexpr std::int64_t nobody = JoinedRows::nobody;

    struct Kept {
        Time time;
        bool has_partner;
    };

    // No more rows before `now` will come.
    void come_to(Time now) {
        if (rule_ != JoinRule::strict || !(is_over(0, now) || is_over(1, now))) return;
        if (!gives_unmatched_[0] && !gives_unmatched_[1]) {  // rows leave without an output: in any order
            for (std::uint32_t side : {0, 1})
                while (is_over(side, now)) let_go(side);
            return;
        }
        for (std::uint32_t side; find_next(side); let_go(side)) {
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
        else if (once_ && side == 1 && !other.has_partner)
            add(0, static_cast<std::uint64_t>(partner), nobody, other.time);
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

    // The side whose oldest row is first of both, in the order of the sequence. False: there is none.
    bool find_oldest(std::uint32_t& side) const {
        const std::deque<Kept>&left = windows_[0], &right = windows_[1];
        if (left.empty() && right.empty()) return false;
        side = left.empty() || (!right.empty() && right.front().time < left.front().time);
        return true;
    }
    Time oldest(std::uint32_t side) const { return windows_[side].front().time; }

    // The side whose oldest row leaves first, whenever that is: if rows of both are kept as long, the oldest of both.
    bool find_next(std::uint32_t& side) const {
        if (!find_oldest(side)) return false;
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
        if (!kept.has_partner && gives_unmatched_[side]) add(side, number, nobody, kept.time);
    }

    void add(std::uint32_t side, std::uint64_t number, std::int64_t partner, Time time) {
        earliest_ = rows_.size() == 0 ? time : std::min(earliest_, time);
        rows_.add(side, number, partner);
    }

    const JoinRule rule_;
    const JoinLengths<Time> within_;
    const std::uint64_t most_;
    const bool pairs_, once_;
    const bool gives_unmatched_[2];
    bool is_partner_{false};  // the row that is being taken
    std::deque<Kept> windows_[2];
    std::uint64_t begins_[2]{};
    JoinedRows rows_;  // the caller reads and clears it
    Time earliest_{};  // the time of the oldest row in them, if there is one
};

}  // namespace callboard
