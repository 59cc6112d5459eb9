// The choice of a free lane's next stage: Prasaad et al. 2018, section 6. A class for each heuristic.
//
// Only schedulable stages are considered: input waits, the stage has room for a lane of this kind, and it is not
// throttled now. A choice looks only at stages where input waits, so its cost grows with the number of ready stages.
// The latest stage costs the same in every graph. No heuristic starves a graph: each chooses some stage whenever one is
// schedulable. Any lane of the pool asks, several at a time; they read estimates that others write, which may be
// stale by a time slice.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <vector>

#include "callboard/scheduling/flow/ready_stages.hpp"

namespace callboard {

class Chooser {
public:
    virtual ~Chooser() = default;

    // Once, when all stages of the graph have been added.
    virtual void prepare(const Stages&) {}

    // The stage for a lane that worked on `last` before, or null; null if no stage is schedulable.
    virtual Stage* choose(ReadyStages& ready, LaneKinds kinds, std::int64_t time, const Stage* last) = 0;

    // Whether a choice takes long, and must not count as work of the chosen stage.
    virtual bool takes_long() const { return false; }

protected:
    // The stage with the highest score; among equals, the latest.
    template <class Score>
    static Stage* highest(ReadyStages& ready, LaneKinds kinds, std::int64_t time, Score score) {
        Stage* best = nullptr;
        double most = 0;
        ready.each(kinds, time, [&](Stage& stage) {
            const double here = score(stage);
            if (best == nullptr || !(here < most)) best = &stage, most = here;
            return false;
        });
        return best;
    }
};

// The rows that each stage gives for a row that enters the graph: its cumulative selectivity (section 6.1). A
// stage with several inputs gets the sum of its inputs. With n stages, all are estimated again after n
// choices, so that a choice costs the same in every graph. If lanes race, each estimate is of one of them.
class RowsPerEntry {
public:
    void prepare(const Stages& stages) {
        sources_.assign(stages.size(), {});
        for (auto& stage : stages) {
            stages_.push_back(stage.get());
            for (auto& edge : stage->edges()) sources_[edge.to->position].push_back(stage->position);
        }
        given_ = std::make_unique<Atomic<double>[]>(stages.size());
        estimate();
    }

    // Before each choice.
    void count() {
        const auto choices = choices_.load(relaxed) + 1;
        choices_.store(choices < stages_.size() ? choices : 0, relaxed);
        if (choices >= stages_.size()) estimate();
    }

    double given_by(std::size_t position) const {
        assert(position < stages_.size());
        return given_[position].load(relaxed);
    }
    double sum() const { return sum_.load(relaxed); }

private:
    void estimate() {
        double sum = 0;
        for (std::size_t i = 0; i < stages_.size(); ++i) {
            double rows = sources_[i].empty() ? 1.0 : 0.0;
            for (const auto source : sources_[i]) rows += given_by(source);
            assert(stages_[i]->position == i);
            given_[i].store(rows * stages_[i]->selectivity(), relaxed);
            sum += given_by(i);
        }
        sum_.store(sum, relaxed);
    }

    std::vector<Stage*> stages_;
    std::vector<std::vector<std::uint32_t>> sources_;
    std::unique_ptr<Atomic<double>[]> given_;
    Atomic<double> sum_{0};
    Atomic<std::size_t> choices_{0};  // since the last estimate
};

// Section 6.1, equation 1: the earliest stage whose output queue is below its threshold. With every queue full, the
// latest makes room.
class ChooseByQueueSize final : public Chooser {
public:
    explicit ChooseByQueueSize(double capacity) : capacity_(capacity) {}

    void prepare(const Stages& stages) override { rows_.prepare(stages); }

    Stage* choose(ReadyStages& ready, LaneKinds kinds, std::int64_t time, const Stage*) override {
        rows_.count();
        const double sum = rows_.sum();
        Stage* chosen = nullptr;
        ready.each(kinds, time, [&](Stage& stage) {
            const double threshold = capacity_ * rows_.given_by(stage.position) / (sum > 0 ? sum : 1);
            double longest = 0;
            for (auto& edge : stage.edges())
                if (const double queued = edge.to->queued(); queued > longest) longest = queued;
            chosen = &stage;  // the latest, if there is no better one
            return stage.edges().empty() || longest < threshold;
        });
        return chosen;
    }

private:
    const double capacity_;  // C: rows in all queues
    RowsPerEntry rows_;
};

// Section 6.2: the latest stage. With `follows`, a lane follows its rounds: see `ReadyStages::latest`.
class ChooseLatest final : public Chooser {
public:
    explicit ChooseLatest(bool follows) : follows_(follows) {}

    Stage* choose(ReadyStages& ready, LaneKinds kinds, std::int64_t time, const Stage* last) override {
        return follows_ ? ready.latest(kinds, time, last) : ready.latest(kinds, time);
    }

private:
    const bool follows_;
};

// Section 6.3, equation 2: the stage whose queue would take longest.
class ChooseByTime final : public Chooser {
public:
    Stage* choose(ReadyStages& ready, LaneKinds kinds, std::int64_t time, const Stage*) override {
        return highest(ready, kinds, time, [](const Stage& stage) {
            return stage.queued() * stage.cost_ns() / (stage.lanes() + 1);
        });
    }
};

// Section 6.4, equation 3: the stage with the least throughput in this window. A stage without a measured cost
// goes first: its throughput is not known.
class ChooseByThroughput final : public Chooser {
public:
    ChooseByThroughput(std::int64_t window_ns, std::int64_t time_slice_ns)
        : window_ns_(window_ns), time_slice_ns_(static_cast<double>(time_slice_ns)) {}

    void prepare(const Stages& stages) override { rows_.prepare(stages); }

    Stage* choose(ReadyStages& ready, LaneKinds kinds, std::int64_t time, const Stage*) override {
        std::int64_t begin = window_begin_.load(relaxed);
        if (time - begin > window_ns_ && window_begin_.compare_exchange_strong(begin, time, relaxed)) begin = time;
        rows_.count();
        return highest(ready, kinds, time, [&](Stage& stage) {
            stage.begin_window(begin);
            const double given = rows_.given_by(stage.position);
            const double before = stage.selectivity() > 0 ? given / stage.selectivity() : 1;
            const double cost = stage.cost_ns() * (before > 1e-9 ? before : 1e-9);
            if (cost <= 0) return 0.0;
            return -(static_cast<double>(stage.window_ns()) + stage.lanes() * time_slice_ns_) / cost;
        });
    }

private:
    const std::int64_t window_ns_;
    const double time_slice_ns_;
    RowsPerEntry rows_;
    Atomic<std::int64_t> window_begin_{0};
};

// Asks a function where there is a choice. If it answers null, the latest stage is chosen.
class ChooseByAsking final : public Chooser {
public:
    // At least two schedulable stages, in the order of the graph.
    using Ask = Stage* (*)(void* self, const std::vector<Stage*>& stages);

    ChooseByAsking(Ask ask, void* self) : ask_(ask), self_(self) {}

    Stage* choose(ReadyStages& ready, LaneKinds kinds, std::int64_t time, const Stage*) override {
        std::vector<Stage*> found;
        ready.each(kinds, time, [&](Stage& stage) { return found.push_back(&stage), false; });
        if (found.empty()) return nullptr;
        Stage* chosen = found.size() == 1 ? nullptr : ask_(self_, found);
        return chosen != nullptr ? chosen : found.back();
    }

    bool takes_long() const override { return true; }

private:
    const Ask ask_;
    void* const self_;
};

}  // namespace callboard
