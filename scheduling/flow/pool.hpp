// A pool: stages of a flow, and the lanes that work on them.
//
// Prasaad et al. 2018, section 2.2: a worker asks a central structure for an operator, works on it for a
// time slice, and asks again. A lane is one worker's share of this. Its runner, an actor or a waiting sender,
// calls run(), which returns when there is nothing left to do. The heuristic chooses the stage
// (heuristics.hpp). A pool is that central structure: its lanes choose only among its stages. A flow has one
// pool for all, or one for each worker, or for each operator. Rows pass between pools as within one.
//
// Idleness: why no round is left waiting while lanes are idle. All operations named here are sequentially consistent,
// that is, in one order.
//   1. A thread that brings input publishes it (Stage::waiting()), then ensures that the stage is in the
//      ready index, and then looks at `idle_`.
//   2. A lane that finds nothing sets its bit in `idle_`, and then looks through the index once more.
//   3. A thread that finds no input at a stage in the index takes the stage out, and looks at waiting() once
//      more. If input waits there, it continues as in rule 1.
//   4. Taking a stage out may hide others for a moment (ready_index.hpp). The thread that did so looks at
//      `idle_` for all input that waits.
//   5. A lane that leaves a stage at which input still waits ensures that the stage is in the index: a
//      partition that was passed on was not announced.
// Suppose that input waits. The thread that published it found the stage in the index, or put it there. A thread
// that took the stage out after that look sees the input by rule 3, and puts the stage back. So the stage is
// in the index, or is put there by a thread that looks at `idle_` after that. A lane whose last look was
// before that had its bit set before that look, so it is seen, and woken. A lane whose last look was later has
// found the stage.
//
// A busy lane looks before it becomes idle. So one awake lane that can do the work is enough, and more are
// woken only for more work than a round (wake-ups cost microseconds). There are two cases of that:
//   - A lane that begins a long piece of work will not look for a while. It sets its bit in `away_`, looks at what
//     else waits, and wakes others for that. These two, and the looks at `waiting` and at `away_` of a thread that
//     brings input, are sequentially consistent for the same reason.
//   - A round may bring a little to each of many stages. A lane that has worked for a while, and sees input at two
//     stages, wakes another lane. That is for speed alone.
// More work at a stage that is for one lane now (lane_trials.hpp) wakes no second one. When the stage is for all
// lanes again, the lane that found this out wakes one.
//
// Lanes beyond the system's level of threads are not active: no thread wakes them, and one that works ends its run
// after the time slice. It sets its bit in `idle_` and then looks for input that waits, for which it wakes active
// lanes. So a thread that brought input was right to consider the lane awake: it looks after that. Each kind of
// lane has an active one.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "callboard/core/clock.hpp"
#include "callboard/scheduling/flow/heuristics.hpp"
#include "callboard/scheduling/flow/ready_stages.hpp"

namespace callboard {

// The lengths of lanes' work.
struct TimeSlices {
    std::int64_t time_slice_ns{500'000};    // at one stage
    std::int64_t activation_ns{2'000'000};  // of a call of run(), after which other actors run
    bool one_by_one{false};                 // a time slice is one round, and no clock is read: for replay

    std::int64_t now() const { return one_by_one ? 0 : monotonic_ns(); }
};

// Called after each time slice at a stage, by the thread that worked. Returns when the work continues: `end`, or now.
class SliceObserver {
public:
    virtual std::int64_t worked(const Stage& stage, std::int64_t begin, std::int64_t end, std::uint64_t rows) = 0;

protected:
    ~SliceObserver() = default;
};

// An observer that calls a function.
using SliceNote = void (*)(const Stage& stage, std::int64_t begin, std::int64_t end, std::uint64_t rows);
class NotedSlices final : public SliceObserver {
public:
    SliceNote note{nullptr};

    std::int64_t worked(const Stage& stage, std::int64_t begin, std::int64_t end, std::uint64_t rows) override {
        note(stage, begin, end, rows);
        return end;
    }
};

class Pool final : public ReadyStages {
public:
    static constexpr std::uint32_t most_lanes = 64;
    static constexpr std::int64_t never = INT64_MAX;
    static constexpr std::int64_t share_every = 50'000;  // ns: several times what it costs to wake a lane

    // The result of run(): idle, to be woken; or its time is over; or idle until a time.
    struct Rest {
        enum Reason { idle, time_over, until } reason;
        std::int64_t time;
    };

    // By a flow. Without a chooser, the latest stage is next.
    Pool(const TimeSlices& slices, std::unique_ptr<Chooser> chooser)
        : time_slices_(slices), chooser_(std::move(chooser)) {}

    // --- construction; one thread, before the first round ------------------------------------------

    using ReadyStages::add;

    void note_slices(SliceNote note) {
        noted_.note = note;
        observe(nullptr);
    }

    // When all stages of the flow have been added.
    void finish(const Stages& stages) {
        make_index();
        if (chooser_ != nullptr) chooser_->prepare(stages);
    }

    // A new lane, idle. Any thread calls `wake(lane)` when the lane is idle and input waits. Then the
    // lane calls run() until that returns `idle`.
    std::uint32_t add_lane(LaneKinds kinds, void (*wake)(void*), void* lane) {
        const auto number = static_cast<std::uint32_t>(lanes_.size());
        assert(number < most_lanes);
        lanes_.push_back({kinds, wake, lane, nullptr});
        idle_.fetch_or(std::uint64_t{1} << number, relaxed);
        for (LaneKinds kind : {native_lanes, python_lanes})
            if (kinds & kind) of_kind_[kind] |= std::uint64_t{1} << number;
        of_kind_[all_lanes] = of_kind_[native_lanes] | of_kind_[python_lanes];
        return number;
    }

    // Any thread, one at a time. The observer is called from now on, and lives as long as this pool; null: only the
    // function of note_slices(), whose observer is returned. Release pairs with the acquire in work().
    SliceObserver* observe(SliceObserver* observer) {
        SliceObserver* const noted = noted_.note != nullptr ? &noted_ : nullptr;
        observer_.store(observer != nullptr ? observer : noted, release);
        return noted;
    }

    // Any thread, one at a time. These lanes are active from now on, as a set of bits.
    void set_active(std::uint64_t lanes) {
        for (LaneKinds kind : {native_lanes, python_lanes})
            assert((of_kind_[kind] == 0 || (lanes & of_kind_[kind])) && "a kind of lane has an active one");
        active_.store(lanes, seq_cst);
        anything_waits();
    }

    // --- lanes -------------------------------------------------------------------------------------

    // By the runner of the lane. Works until there is nothing to do, or for `activation_ns`.
    Rest run(std::uint32_t lane) {
        assert(lane < lanes_.size());
        const LaneKinds kinds = lanes_[lane].kinds;
        const auto bit = std::uint64_t{1} << lane;
        const std::int64_t begin = time_slices_.now();
        std::int64_t time = begin;
        std::int64_t looked = begin;
        const Stage* last = lanes_[lane].last;  // one row may have taken all the time of its last run
        idle_.fetch_and(~bit, relaxed);
        for (;;) {
            if (__builtin_expect(!(active_.load(relaxed) & bit), 0)) {
                idle_.fetch_or(bit, seq_cst);
                anything_waits();
                return {Rest::idle, 0};
            }
            if (time - begin > time_slices_.activation_ns) {
                lanes_[lane].last = last;
                return {Rest::time_over, 0};
            }
            if (const Stage* stage = step_at(kinds, time, bit, last)) {
                last = stage;
                if (time_slices_.one_by_one) return {Rest::time_over, 0};
                if (time - looked > share_every) {
                    looked = time;
                    share();
                }
                continue;
            }
            idle_.fetch_or(bit, seq_cst);
            std::int64_t next = never;
            if (!can_work(kinds, time, next))
                return next == never ? Rest{Rest::idle, 0} : Rest{Rest::until, next};
            idle_.fetch_and(~bit, relaxed);
        }
    }

    // One time slice at one stage. False: there is nothing to do.
    bool step(LaneKinds kinds) {
        std::int64_t time = time_slices_.now();
        return step_at(kinds, time, 0, nullptr) != nullptr;
    }

    // The same for a thread that is not a lane and may not come back, such as a sender that waits for
    // room. A lane that found the stage taken may have become idle, and sees the rest of the input only if
    // this thread wakes it.
    bool help(LaneKinds kinds) {
        std::int64_t time = time_slices_.now();
        Stage* stage = step_at(kinds, time, 0, nullptr);
        if (stage != nullptr && stage->waiting() > 0) wake_for(*stage);
        return stage != nullptr;
    }

    void something_waits(Stage& stage) override {
        remember(stage);
        wake_for(stage);
    }

    bool work_behind(const Stage& stage) override {
        std::int64_t time = time_slices_.now();
        Stage* const behind = latest_behind(stage, time);
        if (behind == nullptr || !behind->enter()) return false;
        work(*behind, time, 0);
        if (behind->waiting() > 0) something_waits(*behind);  // this thread may not come back to it
        else forget(*behind);
        return true;
    }

    // When no lane runs: no more lanes are woken.
    void retire_lanes() { idle_.store(0, relaxed); }

private:
    struct Lane {
        LaneKinds kinds;
        void (*wake)(void*);
        void* lane;
        const Stage* last{nullptr};  // where its runner was when its time was over
    };

    // `bit` is the lane's; 0 for a thread that is not a lane. `time` is now, also when it returns: the clock is
    // read once for a time slice, because the end of one is the beginning of the next.
    Stage* step_at(LaneKinds kinds, std::int64_t& time, std::uint64_t bit, const Stage* last) {
        Stage* stage =
            chooser_ == nullptr ? latest(kinds, time, last) : chooser_->choose(*this, kinds, time, last);
        if (stage == nullptr || !stage->enter()) return stage;
        if (chooser_ != nullptr && chooser_->takes_long()) time = time_slices_.now();
        const bool away = bit != 0 && (stage->gives_parts || may_take_long(*stage));
        if (away) {
            away_.fetch_or(bit, seq_cst);
            anything_waits();
        }
        work(*stage, time, bit == 0 ? 0 : static_cast<std::uint32_t>(__builtin_ctzll(bit)));
        if (stage->waiting() > 0) remember(*stage);
        else forget(*stage);
        if (away) away_.fetch_and(~bit, relaxed);
        return stage;
    }

    // A round takes longer than a time slice, or its time is unknown.
    bool may_take_long(const Stage& stage) const {
        if (time_slices_.one_by_one) return false;
        const double round_ns = stage.cost_ns() * stage.rows_per_unit();
        return round_ns == 0.0 || round_ns > static_cast<double>(time_slices_.time_slice_ns);
    }

    // For a thread that entered the stage. Section 6: as many rows as fit into the time slice by the estimated cost.
    void work(Stage& stage, std::int64_t& time, std::uint32_t lane) {
        RowTotals counts;
        const double cost = stage.cost_ns();
        const bool one = time_slices_.one_by_one || cost == 0.0;
        LaneTrials* const trials = stage.trials();
        const auto lanes = trials != nullptr ? stage.lanes() : 1;
        const double most = one ? 1.0 : static_cast<double>(time_slices_.time_slice_ns) / cost;
        const auto rounds = stage.work(counts, most, lane);
        assert(rounds >= 0 && stage.lanes() != 0 && "a thread that works at a stage has entered it");
        const std::int64_t begin = time;
        time = time_slices_.now();
        if (rounds != 0) stage.note(counts, rounds, time - begin, stage.most_lanes == 1);
        const bool more =
            trials != nullptr && trials->note({time, time - begin, counts.taken, lanes, stage.lanes()});
        SliceObserver* const observer = observer_.load(acquire);
        if (__builtin_expect(observer != nullptr, 0) && rounds != 0)
            time = observer->worked(stage, begin, time, counts.taken);
        stage.leave();
        if (more) wake_for(stage);
    }

    bool can_work(LaneKinds kinds, std::int64_t time, std::int64_t& next) {
        bool can = false;
        each(kinds, [&](const Stage& stage) {
            can = stage.not_before() <= time;
            if (stage.not_before() < next) next = stage.not_before();
            return can;
        });
        return can;
    }

    // Wakes a lane for the stage, if one is needed.
    void wake_for(Stage& stage) {
        const auto able = of_kind_[stage.runs_on] & active_.load(seq_cst);
        const auto idle = idle_.load(seq_cst) & able;
        if (idle == 0) return;
        const auto awake = able & ~idle & ~away_.load(seq_cst);
        if (awake != 0 && (stage.waiting() < 2 || stage.is_for_one())) return;  // an awake lane will see it
        wake_one_of(idle);
    }

    void wake_one_of(std::uint64_t idle) {
        const auto bit = idle & -idle;
        if (idle_.fetch_and(~bit, acq_rel) & bit) {
            assert(static_cast<std::size_t>(__builtin_ctzll(bit)) < lanes_.size());
            const Lane& lane = lanes_[static_cast<std::size_t>(__builtin_ctzll(bit))];
            lane.wake(lane.lane);
        }
    }

    // Wakes a lane if input waits at two stages, and no lane is awake for the second.
    void share() {
        const auto idle = idle_.load(relaxed) & active_.load(relaxed);
        if (idle == 0) return;
        bool is_second = false;
        each(all_lanes, [&](const Stage& stage) {
            const auto able = idle & of_kind_[stage.runs_on];
            if (is_second && able != 0) return wake_one_of(able), true;
            is_second = true;
            return false;
        });
    }

    void anything_waits() override {
        const auto active = active_.load(seq_cst);
        const auto idle = idle_.load(seq_cst) & active;
        if (idle == 0) return;
        LaneKinds kinds = 0;
        for (LaneKinds kind : {native_lanes, python_lanes})
            if (idle & of_kind_[kind]) kinds |= kind;
        each(kinds, [&](Stage& stage) {
            wake_for(stage);
            return (idle_.load(relaxed) & active) == 0;
        });
    }

    const TimeSlices& time_slices_;
    NotedSlices noted_;
    Atomic<SliceObserver*> observer_{nullptr};
    const std::unique_ptr<Chooser> chooser_;
    std::vector<Lane> lanes_;
    std::uint64_t of_kind_[4]{};
    Atomic<std::uint64_t> active_{~std::uint64_t{0}};    // lanes that may work
    alignas(cache_line) Atomic<std::uint64_t> idle_{0};  // lanes; written when one goes idle, or is woken
    Atomic<std::uint64_t> away_{0};                      // lanes at a long piece of work
};

}  // namespace callboard
