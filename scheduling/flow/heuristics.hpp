// Which stage a free lane works on next: Prasaad et al. 2018, section 6.
//
// Only schedulable stages are considered: input waits, fewer lanes than may are at work, the lane is
// of the right kind. None starves a graph: each answers some stage whenever one is schedulable. Any
// lane calls them, several at a time; they read estimates that others write, which may be stale by a
// slice.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "callboard/scheduling/flow/stage.hpp"

namespace callboard {

using Stages = std::vector<std::unique_ptr<Stage>>;

class Heuristic {
public:
    enum Kind : std::uint8_t {
        queue_size_throttling,  // 6.1: the earliest whose output queue is below its threshold
        last_in_pipeline,       // 6.2: the latest
        estimated_time,         // 6.3: the one whose queue would take longest
        current_throughput,     // 6.4: the one with the least throughput in this window
        custom,                 // what a function answers
    };

    // `custom`: the stage's position among those of `schedulable`, which are `count` positions in
    // the graph; an answer beyond them means the last.
    using Choose = std::uint32_t (*)(void* self, const std::uint32_t* schedulable, std::uint32_t count);

    explicit Heuristic(Kind kind, double capacity = 65536, std::int64_t window_ns = 100'000'000,
                       std::int64_t slice_ns = 500'000, Choose choose = nullptr, void* self = nullptr)
        : kind_(kind), capacity_(capacity), window_ns_(window_ns), slice_ns_(slice_ns), custom_(choose),
          self_(self) {}
    Heuristic(const Heuristic& other)
        : Heuristic(other.kind_, other.capacity_, other.window_ns_, other.slice_ns_, other.custom_,
                    other.self_) {}

    // Once, when all stages are there.
    void prepare(const Stages& stages) {
        sources_.assign(stages.size(), {});
        for (auto& stage : stages)
            for (auto& edge : stage->edges) sources_[edge.to->position].push_back(stage->position);
    }

    // The stage to work on, or null if none is schedulable.
    Stage* choose(const Stages& stages, LaneKinds kinds, std::int64_t time) {
        switch (kind_) {
            case queue_size_throttling: return choose_by_throttling(stages, kinds, time);
            case last_in_pipeline: return choose_last(stages, kinds, time);
            case estimated_time:
                return choose_by(stages, kinds, time, [](const Stage& stage) {
                    return stage.queued() * stage.cost_ns() / (stage.lanes() + 1);  // equation 2
                });
            case current_throughput: return choose_by_throughput(stages, kinds, time);
            case custom: return choose_custom(stages, kinds, time);
        }
        return nullptr;
    }

private:
    static bool is_schedulable(const Stage& stage, LaneKinds kinds, std::int64_t time) {
        return (stage.runs_on & kinds) && stage.waiting() > 0 && stage.lanes() < stage.most_lanes &&
               stage.not_before() <= time;
    }

    // The one with the highest score; of equals, the latest.
    template <class Score>
    static Stage* choose_by(const Stages& stages, LaneKinds kinds, std::int64_t time, Score score) {
        Stage* best = nullptr;
        double highest = 0;
        for (auto& stage : stages) {
            if (!is_schedulable(*stage, kinds, time)) continue;
            const double here = score(*stage);
            if (best != nullptr && here < highest) continue;
            best = stage.get();
            highest = here;
        }
        return best;
    }

    static Stage* choose_last(const Stages& stages, LaneKinds kinds, std::int64_t time) {
        for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage)
            if (is_schedulable(**stage, kinds, time)) return stage->get();
        return nullptr;
    }

    // How many rows stage number `position` gives for a row that enters the graph (section 6.1). A
    // stage with several inputs gets the sum of what comes.
    double cumulative_selectivity(const Stages& stages, std::size_t position, double* known) const {
        double rows = sources_[position].empty() ? 1.0 : 0.0;
        for (const auto source : sources_[position]) rows += known[source];
        return known[position] = rows * stages[position]->selectivity();
    }

    // Equation 1. With every queue full, the latest stage makes room.
    Stage* choose_by_throttling(const Stages& stages, LaneKinds kinds, std::int64_t time) const {
        std::vector<double> known(stages.size());
        double sum = 0;
        for (std::size_t i = 0; i < stages.size(); ++i) sum += cumulative_selectivity(stages, i, known.data());
        for (auto& stage : stages) {
            if (!is_schedulable(*stage, kinds, time)) continue;
            const double threshold = capacity_ * known[stage->position] / (sum > 0 ? sum : 1);
            double longest = 0;
            for (auto& edge : stage->edges)
                if (const double queued = edge.to->queued(); queued > longest) longest = queued;
            if (stage->edges.empty() || longest < threshold) return stage.get();
        }
        return choose_last(stages, kinds, time);
    }

    // Equation 3. A stage without a measured cost goes first: its throughput is not known.
    Stage* choose_by_throughput(const Stages& stages, LaneKinds kinds, std::int64_t time) {
        std::int64_t begin = window_begin_.load(relaxed);
        if (time - begin > window_ns_ && window_begin_.compare_exchange_strong(begin, time, relaxed))
            for (auto& stage : stages) stage->begin_window();
        std::vector<double> known(stages.size());
        for (std::size_t i = 0; i < stages.size(); ++i) cumulative_selectivity(stages, i, known.data());
        return choose_by(stages, kinds, time, [&](const Stage& stage) {
            const double before = stage.selectivity() > 0 ? known[stage.position] / stage.selectivity() : 1;
            const double cost = stage.cost_ns() * (before > 1e-9 ? before : 1e-9);
            if (cost <= 0) return 0.0;
            const double time_spent = static_cast<double>(stage.slice_ns()) +
                                      static_cast<double>(stage.lanes()) * static_cast<double>(slice_ns_);
            return -time_spent / cost;
        });
    }

    Stage* choose_custom(const Stages& stages, LaneKinds kinds, std::int64_t time) const {
        std::vector<std::uint32_t> schedulable;
        for (auto& stage : stages)
            if (is_schedulable(*stage, kinds, time)) schedulable.push_back(stage->position);
        if (schedulable.empty()) return nullptr;
        const auto count = static_cast<std::uint32_t>(schedulable.size());
        const auto chosen = count == 1 ? 0 : custom_(self_, schedulable.data(), count);
        return stages[schedulable[chosen < count ? chosen : count - 1]].get();
    }

    const Kind kind_;
    const double capacity_;        // QST's C: rows in all queues
    const std::int64_t window_ns_;
    const std::int64_t slice_ns_;
    const Choose custom_;
    void* const self_;
    std::vector<std::vector<std::uint32_t>> sources_;
    Atomic<std::int64_t> window_begin_{0};
};

}  // namespace callboard
