// A pool's stages, and those at which input waits: heuristics choose from these.
//
// A search meets only stages at which input waits, or waited a moment ago. So its cost grows with the
// number of ready stages, not of all stages. pool.hpp says why none is overlooked.
#pragma once

#include <cassert>
#include <cstdint>
#include <vector>

#include "callboard/scheduling/flow/ready_index.hpp"
#include "callboard/scheduling/flow/stage.hpp"

namespace callboard {

class ReadyStages : public StageObserver {
public:
    ReadyStages() = default;
    ReadyStages(const ReadyStages&) = delete;

    // The stages, in the order of the graph; a stage's `place` is its index.
    const std::vector<Stage*>& stages() const { return stages_; }

    // Any thread. Calls visit(stage), in the order of the graph, with those that lanes of these kinds could
    // work at by now or later, until it returns true.
    template <class Visit>
    void each(LaneKinds kinds, Visit&& visit) {
        for (auto place = first(kinds, 0); place != ReadyIndex::none; place = first(kinds, place + 1))
            if (Stage& stage = *stages_[place]; is_ready(stage) && visit(stage)) return;
    }

    // The same, with those that are schedulable at `time`.
    template <class Visit>
    void each(LaneKinds kinds, std::int64_t time, Visit&& visit) {
        each(kinds, [&](Stage& stage) { return stage.not_before() <= time && visit(stage); });
    }

    // The latest stage that is schedulable; null if none is.
    Stage* latest(LaneKinds kinds, std::int64_t time) {
        auto place = last_place(kinds, static_cast<std::uint32_t>(stages_.size()));
        while (place != ReadyIndex::none && !is_schedulable(*stages_[place], time)) place = last_place(kinds, place);
        return place != ReadyIndex::none ? stages_[place] : nullptr;
    }

    // The same, of the stages after one that run on the same lanes.
    Stage* latest_behind(const Stage& stage, std::int64_t time) {
        assert(has(stage) && "a stage of this pool");
        auto place = last_place(stage.runs_on, static_cast<std::uint32_t>(stages_.size()));
        while (place != ReadyIndex::none && place > stage.place && !is_schedulable(*stages_[place], time))
            place = last_place(stage.runs_on, place);
        return place != ReadyIndex::none && place > stage.place ? stages_[place] : nullptr;
    }

    // The next stage for a lane that worked at `last` (null: at none yet); null if none is schedulable.
    // Each lane keeps the rounds that it has in its caches: it follows its rounds to the stages after `last`. If
    // nothing waits there, it takes the latest stage to which no lane, at work right before it, is about to bring
    // more; or else the latest.
    Stage* latest(LaneKinds kinds, std::int64_t time, const Stage* last) {
        if (last != nullptr) {
            for (auto edge = last->edges().rbegin(); edge != last->edges().rend(); ++edge)
                if (has(*edge->to) && (edge->to->runs_on & kinds) && is_schedulable(*edge->to, time)) return edge->to;
        }
        Stage* crowded = nullptr;
        auto end = static_cast<std::uint32_t>(stages_.size());
        for (auto place = last_place(kinds, end); place != ReadyIndex::none; place = last_place(kinds, place)) {
            Stage& stage = *stages_[place];
            if (!is_schedulable(stage, time)) continue;
            if (place == 0 || stages_[place - 1]->lanes() == 0) return &stage;
            if (crowded == nullptr) crowded = &stage;
        }
        return crowded;
    }

protected:
    ~ReadyStages() = default;

    // One thread, before the first round.
    void add(Stage& stage) {
        assert(stage.place == stages_.size());
        stages_.push_back(&stage);
    }
    void make_index() {
        for (Stage* stage : stages_) kinds_ |= 1u << stage->runs_on;
        for (LaneKinds runs_on = 1; runs_on <= all_lanes; ++runs_on)
            if (kinds_ & 1u << runs_on) index_of(runs_on).make_room(static_cast<std::uint32_t>(stages_.size()));
    }

    void remember(const Stage& stage) {
        assert(has(stage) && (kinds_ & 1u << stage.runs_on) && "a stage of this pool");
        index_of(stage.runs_on).set(stage.place);
    }

    // Nothing seems to wait there.
    void forget(Stage& stage) {
        assert(has(stage) && "a stage of this pool");
        ReadyIndex& index = index_of(stage.runs_on);
        if (!index.has(stage.place)) return;
        const bool hid_others = index.clear(stage.place);
        if (stage.waiting() > 0) something_waits(stage);
        if (hid_others) anything_waits();
    }

    // Other lanes may have missed input that waits at stages that they do not know.
    virtual void anything_waits() = 0;

private:
    bool is_ready(Stage& stage) {
        if (stage.waiting() <= 0) return forget(stage), false;
        return stage.has_room_for_lane();
    }

    bool is_schedulable(Stage& stage, std::int64_t time) { return is_ready(stage) && stage.not_before() <= time; }

    // The other stages belong to other pools.
    bool has(const Stage& stage) const { return stage.place < stages_.size() && stages_[stage.place] == &stage; }

    std::uint32_t first(LaneKinds kinds, std::uint32_t from) const {
        auto place = ReadyIndex::none;
        each_index(kinds, [&](const ReadyIndex& index) {
            if (const auto here = index.first(from); here < place) place = here;
        });
        return place;
    }

    std::uint32_t last_place(LaneKinds kinds, std::uint32_t end) const {
        auto place = ReadyIndex::none;
        each_index(kinds, [&](const ReadyIndex& index) {
            const auto here = index.last(end);
            if (here != ReadyIndex::none && (place == ReadyIndex::none || here > place)) place = here;
        });
        return place;
    }

    template <class Visit>
    void each_index(LaneKinds kinds, Visit visit) const {
        for (LaneKinds runs_on = 1; runs_on <= all_lanes; ++runs_on)
            if ((runs_on & kinds) && (kinds_ & 1u << runs_on)) visit(index_[runs_on - 1]);
    }

    ReadyIndex& index_of(LaneKinds runs_on) {
        assert(runs_on != 0 && runs_on <= all_lanes);
        return index_[runs_on - 1];
    }

    std::vector<Stage*> stages_;
    std::uint32_t kinds_{0};  // a bit for each `runs_on` among them
    // One for each set of kinds that a stage may run on, so that a native lane does not look at stages
    // that need the interpreter.
    alignas(cache_line) ReadyIndex index_[all_lanes];
};

}  // namespace callboard
