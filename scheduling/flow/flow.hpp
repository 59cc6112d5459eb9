// A flow: the stages of a running stream graph, and the lanes that work on them.
//
// Prasaad et al. 2018, section 2.2: a worker asks a central structure for an operator, works on it
// for a time slice, and asks again. A lane is a worker's part in this: whoever runs it, an actor or
// a waiting sender, calls run() and is told when there is nothing left to do. What is chosen is the
// heuristic's business (heuristics.hpp).
//
// Admission. Round k enters when fewer than `window` rounds are on their way: k < done() + window,
// where done() counts the rounds that have left all sinks. So every structure of every stage has
// room for what comes (stage.hpp), no lane ever waits for another, and memory is bounded. No shape
// of graph deadlocks: take the oldest round on its way and the first stage, in topological order,
// that it has not left. All earlier rounds have left that stage, and all stages before it have
// handed it on, so the round can be taken there, or a lane has it in work.
//
// Idleness. A lane that finds nothing sets its bit in `idle_` and looks once more; who makes
// something waiting looks at `idle_` after it. All four are sequentially consistent, so one of the
// two sees the other: no round is left beside idle lanes. A lane that is not idle looks before it
// becomes so; therefore one awake lane that can do the work is enough, and more are woken only for
// more work than a round (wake-ups cost microseconds). But a lane that goes to work on something
// long will not look for a while: it sets its bit in `away_`, looks at what else waits, and wakes
// others for that. These two, and the looks at `waiting` and at `away_` of who makes something
// waiting, are sequentially consistent for the same reason.
#pragma once

#include <algorithm>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "callboard/core/parker.hpp"
#include "callboard/scheduling/flow/heuristics.hpp"
#include "callboard/scheduling/flow/keyed_stage.hpp"
#include "callboard/scheduling/flow/markers.hpp"
#include "callboard/scheduling/flow/ordered_stage.hpp"
#include "callboard/scheduling/flow/shared_stage.hpp"

namespace callboard {

class Flow final : private StageObserver {
public:
    static constexpr std::uint32_t most_lanes = 64;
    static constexpr std::int64_t never = INT64_MAX;

    struct Settings {
        std::uint32_t window{256};          // rounds; a power of two
        std::int64_t slice_ns{500'000};     // of an allotment
        std::int64_t turn_ns{2'000'000};    // of a call of run(), before other actors get theirs
        std::uint32_t marker_every{64};     // rounds; of one of so many the latency is measured
        bool one_by_one{false};             // a slice is one round, and no clock is read: for replay
        Reordering reordering{Reordering::non_blocking};
        Partitioning partitioning{Partitioning::hybrid};
    };

    // What run() says: nothing to do, to be woken; or a turn is over; or nothing before a time.
    struct Rest {
        enum Reason { idle, turn_over, until } reason;
        std::int64_t time;
    };

    Flow(Settings settings, std::unique_ptr<Chooser> chooser)
        : settings(settings), chooser_(std::move(chooser)), markers_(settings.window, settings.marker_every) {}
    Flow(const Flow&) = delete;

    // --- making it; one thread, before the first round ---------------------------------------------

    // Stages are added in topological order.
    Stage& add_shared(const Work& work, LaneKinds runs_on, std::uint32_t most_lanes) {
        return add<SharedStage>(runs_on, most_lanes, work, settings.window, settings.reordering);
    }

    Stage& add_ordered(const Work& work, LaneKinds runs_on, std::uint32_t inputs) {
        return add<OrderedStage>(runs_on, 1, work, inputs, settings.window);
    }

    // And the stage before it that divides batches.
    Stage& add_keyed(const Work& divider, const Work& work, LaneKinds runs_on, std::uint32_t most_lanes,
                     std::uint32_t partitions) {
        Stage& before = add_shared(divider, runs_on, most_lanes);
        return add<KeyedStage>(runs_on, std::min(partitions, most_lanes), work, before, partitions,
                               settings.window, settings.reordering, settings.partitioning);
    }

    void connect(Stage& from, Stage& to, std::uint32_t input) { from.connect(to.entrance(), input); }

    // A way into the graph. Batches for all of them are admitted together, in the order of these calls.
    void add_entry(Stage& to, std::uint32_t input) {
        to.mark_beginnings(markers_);
        entries_.push_back({&to.entrance(), input});
    }

    // After all of these. A stage that leads nowhere is a sink.
    void finish_graph() {
        for (auto& stage : stages_)
            if (stage->edges().empty()) sinks_.push_back(stage.get());
        chooser_->prepare(stages_);
    }

    // A lane, idle. `wake(lane)` is called, by any thread, when it is and something waits: then it is to
    // run() until that says that it is idle.
    std::uint32_t add_lane(LaneKinds kinds, void (*wake)(void*), void* lane) {
        const auto number = static_cast<std::uint32_t>(lanes_.size());
        assert(number < most_lanes);
        lanes_.push_back({kinds, wake, lane});
        idle_.fetch_or(std::uint64_t{1} << number, relaxed);
        for (LaneKinds kind : {native_lanes, python_lanes})
            if (kinds & kind) of_kind_[kind] |= std::uint64_t{1} << number;
        of_kind_[all_lanes] = of_kind_[native_lanes] | of_kind_[python_lanes];
        return number;
    }

    // --- senders; one at a time --------------------------------------------------------------------

    std::int64_t admitted() const { return admitted_.load(relaxed); }
    bool has_room() const { return admitted() < done() + settings.window; }

    // There is room. A batch for each of the entries' edges; null: empty.
    void admit(void** batches) {
        const auto serial = admitted();
        markers_.arrived(serial);
        admitted_.store(serial + 1, relaxed);
        for (std::size_t i = 0; i < entries_.size(); ++i)
            entries_[i].to->put(entries_[i].input, serial, batches[i]);
    }

    // Rounds that have left all sinks.
    std::int64_t done() const {
        std::int64_t least = INT64_MAX;
        for (Stage* sink : sinks_) {
            const auto left = sink->delivered();
            if (left < least) least = left;
        }
        return least;
    }

    // Any thread. Waits, without using the processor, until done() is at least `rounds`, or
    // `nanoseconds` are over.
    bool wait_until_done(std::int64_t rounds, std::int64_t nanoseconds) {
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::nanoseconds(nanoseconds);
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            // Then done(); who lets a round go changes that and then looks at `wanted_`. All of it is
            // sequentially consistent, so one of the two sees the other.
            if (rounds < wanted_.load(relaxed)) wanted_.store(rounds, seq_cst);
            if (done() >= rounds) return true;
            if (left_.wait_until(lock, deadline) == std::cv_status::timeout) return done() >= rounds;
        }
    }

    // --- lanes -------------------------------------------------------------------------------------

    // By whoever runs the lane. Works until there is nothing to do, or the turn is over.
    Rest run(std::uint32_t lane) {
        const LaneKinds kinds = lanes_[lane].kinds;
        const auto bit = std::uint64_t{1} << lane;
        const std::int64_t begin = now();
        idle_.fetch_and(~bit, relaxed);
        for (;;) {
            const std::int64_t time = now();
            if (time - begin > settings.turn_ns) return {Rest::turn_over, 0};
            if (step_at(kinds, time, bit) != nullptr) {
                if (settings.one_by_one) return {Rest::turn_over, 0};
                continue;
            }
            idle_.fetch_or(bit, seq_cst);
            std::int64_t next = never;
            if (!can_work(kinds, time, next))
                return next == never ? Rest{Rest::idle, 0} : Rest{Rest::until, next};
            idle_.fetch_and(~bit, relaxed);
        }
    }

    // One slice of one stage. False: there is nothing to do.
    bool step(LaneKinds kinds, std::int64_t time) { return step_at(kinds, time, 0) != nullptr; }

    // The same for who is no lane and may not come back, such as a sender that waits for room. A lane that
    // found the stage taken may have become idle, and sees what is left only if it is told.
    bool help(LaneKinds kinds, std::int64_t time) {
        Stage* stage = step_at(kinds, time, 0);
        if (stage != nullptr && stage->waiting() > 0) something_waits(*stage);
        return stage != nullptr;
    }

    std::int64_t now() const { return settings.one_by_one ? 0 : monotonic_ns(); }

    const Stages& stages() const { return stages_; }
    Markers& markers() { return markers_; }
    const Settings settings;

private:
    struct Lane {
        LaneKinds kinds;
        void (*wake)(void*);
        void* lane;
    };

    template <class Kind, class... Arguments>
    Stage& add(LaneKinds runs_on, std::uint32_t most_lanes, Arguments&&... arguments) {
        const Stage::Site site{*this, static_cast<std::uint32_t>(stages_.size()), runs_on, most_lanes};
        stages_.push_back(std::make_unique<Kind>(site, std::forward<Arguments>(arguments)...));
        return *stages_.back();
    }

    // `bit` is the lane's; 0 of who is none.
    Stage* step_at(LaneKinds kinds, std::int64_t time, std::uint64_t bit) {
        Stage* stage = chooser_->choose(stages_, kinds, time);
        if (stage == nullptr || !stage->enter()) return stage;
        const bool away = bit != 0 && may_take_long(*stage);
        if (away) {
            away_.fetch_or(bit, seq_cst);
            for (auto& other : stages_)
                if (other->waiting() > 0 && other->lanes() < other->most_lanes) something_waits(*other);
        }
        work(*stage);
        if (away) away_.fetch_and(~bit, relaxed);
        return stage;
    }

    // A round takes longer than a slice, or nobody knows.
    bool may_take_long(const Stage& stage) const {
        if (settings.one_by_one) return false;
        const double round_ns = stage.cost_ns() * stage.rows_per_unit();
        return round_ns == 0.0 || round_ns > static_cast<double>(settings.slice_ns);
    }

    // Who entered the stage. Section 6: as many rows as the slice holds by the estimated cost.
    void work(Stage& stage) {
        RowCounts counts;
        const double cost = stage.cost_ns();
        const bool one = settings.one_by_one || cost == 0.0;
        const std::int64_t begin = now();
        const auto rounds = stage.work(counts, one ? 1.0 : static_cast<double>(settings.slice_ns) / cost);
        if (rounds != 0) stage.note(counts, rounds, now() - begin);
        stage.leave();
    }

    bool can_work(LaneKinds kinds, std::int64_t time, std::int64_t& next) const {
        for (auto& stage : stages_) {
            if (!stage->has_work_for(kinds)) continue;
            if (stage->not_before() <= time) return true;
            if (stage->not_before() < next) next = stage->not_before();
        }
        return false;
    }

    void something_waits(Stage& stage) override {
        const auto able = of_kind_[stage.runs_on];
        const auto idle = idle_.load(seq_cst) & able;
        if (idle == 0) return;
        const auto awake = able & ~idle & ~away_.load(seq_cst);
        if (awake != 0 && stage.waiting() < 2) return;  // an awake lane will see it
        const auto bit = idle & -idle;
        if (idle_.fetch_and(~bit, acq_rel) & bit) {
            const Lane& lane = lanes_[static_cast<std::size_t>(__builtin_ctzll(bit))];
            lane.wake(lane.lane);
        }
    }

    void round_left() override {
        markers_.left(done());
        if (done() < wanted_.load(seq_cst)) return;
        std::lock_guard<std::mutex> lock(mutex_);
        wanted_.store(INT64_MAX, relaxed);  // who wants more says so again
        left_.notify_all();
    }

    const std::unique_ptr<Chooser> chooser_;
    Markers markers_;
    Stages stages_;
    std::vector<Stage::Edge> entries_;
    std::vector<Stage*> sinks_;
    std::vector<Lane> lanes_;
    std::uint64_t of_kind_[4]{};
    alignas(cache_line) Atomic<std::int64_t> admitted_{0};
    alignas(cache_line) Atomic<std::uint64_t> idle_{0};
    alignas(cache_line) Atomic<std::uint64_t> away_{0};  // lanes at something long
    alignas(cache_line) Atomic<std::int64_t> wanted_{INT64_MAX};  // the least that somebody waits for
    std::mutex mutex_;
    std::condition_variable left_;
};

}  // namespace callboard
