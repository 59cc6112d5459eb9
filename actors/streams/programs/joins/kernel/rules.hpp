// The rules of a lane: its steps at each row of the merged sequence, and which stored rows that row sees. By
// Gulisano et al., "ScaleJoin", section II and algorithm 1, after the three-step procedure of Kang, Naughton and
// Viglas 2003.
//
// Each lane reads all rows, and stores every n-th of either side. A row meets each earlier row of the other side in
// the one lane that stored it; so the lanes divide the comparisons and repeat none. (The paper counts both sides
// together. Then rows that come by turns from R and S make one lane store all of R, and the work is even only by
// chance.) One side goes round from the first lane to the last, the other one back, so that no lane is ahead in
// both.
//
// The rows that have left a window depend also on rows that the lane did not store, so all rows pass here. So do
// those without a partner, which see nothing and are not stored:
//   three_step  A row meets the other side's window, is stored, and then removes from its own side's window what is
//               more than `within` older than it. So a window is as its side's latest row left it, and two rows
//               further apart than `within` may meet, as the paper says.
//   strict      Rows more than `within` older leave both windows first. Times grow, so they are too old for all
//               later rows; and so two rows meet exactly if they are at most `within` apart.
//   last_rows   The last n rows of the other side are seen. That is three_step by a clock which counts the rows of a
//               side, all of them and not the lane's alone, within n - 1.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>

#include "callboard/streams/programs/joins/kernel/batch.hpp"
#include "callboard/streams/programs/joins/kernel/window.hpp"

namespace callboard {

enum class JoinRule : std::uint8_t { three_step, strict, last_rows };

// Whether a lane is the one that stores a row. `turn` is the row's number among those of its side. For the right side
// lanes count from the last one.
constexpr bool is_stored_by_lane(std::uint64_t side, std::uint64_t turn, std::uint64_t lane, std::uint64_t lanes) {
    return turn % lanes == (side == 0 ? lane : lanes - 1 - lane);
}

// The time for which rows of each side stay in their window: within this time after a left row, a right row may be
// its partner, and vice versa.
template <class Time>
struct JoinLengths {
    JoinLengths(Time both = {}) : of{both, both} {}
    JoinLengths(Time left, Time right) : of{left, right} {}

    Time of[2];
};

// A lane's settings, whatever the type of its times.
struct JoinLane {
    JoinPredicate predicate{};
    JoinRule rule{JoinRule::three_step};
    std::uint64_t lanes{1}, lane{0};
    std::uint64_t passed[2]{};  // how many rows of each side came before, all of them without a partner
    std::uint64_t seed{0};      // of the index's hashes
};

template <class Time>
struct JoinSettings : JoinLane {
    JoinSettings() = default;
    JoinSettings(const JoinLane& lane, Time left, Time right) : JoinLane(lane), within(left, right) {}
    JoinSettings(const JoinPredicate& predicate, JoinRule rule, JoinLengths<Time> within, std::uint64_t lanes = 1,
                 std::uint64_t lane = 0)
        : JoinLane{predicate, rule, lanes, lane}, within(within) {}

    JoinLengths<Time> within{};  // of last_rows: n - 1, so n is at least 1, and below 2**53 where times are doubles
};

// Both sides' windows, with columns of the caller's choice.
template <class Time>
class JoinWindows {
public:
    JoinWindows(const JoinSettings<Time>& settings, const JoinColumns& columns)
        : rule_(settings.rule),
          within_(settings.within),
          lanes_(settings.lanes),
          lane_(settings.lane),
          turns_{settings.passed[0], settings.passed[1]},
          arena_(columns) {
        assert(lane_ < lanes_ && !(within_.of[0] < Time{}) && !(within_.of[1] < Time{}));
    }

    // A row of the batch. `see(window)` is called with the other side's window, whose rows from begin() to end() are
    // seen; `store(window, time)` if the row is this lane's to store; `expired(side, position)` for each row that is
    // seen no more.
    template <class See, class Store, class Expired>
    void take(const JoinBatch<Time>& batch, std::size_t row, const See& see, const Store& store,
              const Expired& expired) {
        const std::uint32_t side = batch.sides[row];
        assert(side < 2 && row < batch.rows);
        const std::uint64_t turn = turns_[side]++;
        const Time now = time_at(batch, row, turn);
        if (rule_ == JoinRule::strict) {
            expire(0, now, expired);
            expire(1, now, expired);
        }
        const bool is_alone = batch.alone != nullptr && batch.alone[row] != 0;
        if (!is_alone) see(windows_[1 - side]);
        if (!is_alone && is_mine(side, turn)) store(windows_[side], now);
        if (rule_ != JoinRule::strict) expire(side, now, expired);
    }

    // Loads a row that was in its window when another join was saved: before all rows that are taken, and after the
    // rows of its side that `passed` counts.
    template <class Store>
    void load(const JoinBatch<Time>& batch, std::size_t row, const Store& store) {
        const std::uint32_t side = batch.sides[row];
        const std::uint64_t turn = turns_[side]++;
        const bool is_alone = batch.alone != nullptr && batch.alone[row] != 0;
        if (!is_alone && is_mine(side, turn)) store(windows_[side], time_at(batch, row, turn));
    }

    // Between batches.
    void purge() noexcept {
        windows_[0].purge();
        windows_[1].purge();
    }

    const JoinWindow<Time>& of(std::uint32_t side) const { return windows_[side]; }
    JoinWindow<Time>& of(std::uint32_t side) { return windows_[side]; }

    // Whether a row of this time, which take() said to store, is seen no more.
    bool has_left(std::uint32_t side, Time time) const { return is_expired(clocks_[side], time, within_.of[side]); }

    const BlockArena& arena() const { return arena_; }

private:
    Time time_at(const JoinBatch<Time>& batch, std::size_t row, std::uint64_t turn) const {
        return rule_ == JoinRule::last_rows ? static_cast<Time>(turn) : batch.times[row];
    }
    bool is_mine(std::uint32_t side, std::uint64_t turn) const {
        return is_stored_by_lane(side, turn, lane_, lanes_);
    }

    template <class Expired>
    void expire(std::uint32_t side, Time now, const Expired& expired) {
        clocks_[side] = now;
        windows_[side].expire(now, within_.of[side], [&](std::uint64_t position) { expired(side, position); });
    }

    const JoinRule rule_;
    const JoinLengths<Time> within_;
    const std::uint64_t lanes_, lane_;
    std::uint64_t turns_[2];  // how many rows of each side came
    Time clocks_[2]{};        // by which rows have left, since the first one was taken
    BlockArena arena_;
    JoinWindow<Time> windows_[2]{JoinWindow<Time>(arena_), JoinWindow<Time>(arena_)};
};

}  // namespace callboard
