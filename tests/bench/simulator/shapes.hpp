// The graphs of Schneider and Wu 2017, section 5, made of the real stages and pools, for real threads and for simulated
// ones alike. `real.cpp` and `simulated.cpp` say how an operator works, and how a thread sleeps.
//
//   shape     pipeline (operators in a row), wide (side by side, into one sink), mixed (`width` rows of operators)
//   model     dynamic, dedicated (a thread for each operator), manual (the sender's thread)
//   stages    chained (stateless, sixteen in a row as one stage), shared (stateless), ordered (one lane at a time)
//   operators, width, rows (of a round), flops (of a row), lanes, window
//   rounds    how many are measured, after `warm` others
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "callboard/scheduling/flow/flow.hpp"
#include "../natives/operator.hpp"

namespace shapes {

using namespace callboard;

class Options {
public:
    Options(int count, char** words) {
        for (int i = 1; i < count; ++i) {
            const std::string word = words[i];
            const auto sign = word.find('=');
            if (sign == word.npos) fail("not KEY=VALUE: " + word);
            given_[word.substr(0, sign)] = word.substr(sign + 1);
        }
    }

    std::string word(const std::string& key, const std::string& otherwise) const {
        const auto found = given_.find(key);
        return found == given_.end() ? otherwise : found->second;
    }
    double number(const std::string& key, double otherwise) const {
        const auto found = given_.find(key);
        return found == given_.end() ? otherwise : std::stod(found->second);
    }
    int count(const std::string& key, int otherwise) const { return static_cast<int>(number(key, otherwise)); }

    [[noreturn]] static void fail(const std::string& what) {
        std::fprintf(stderr, "%s\n", what.c_str());
        std::exit(1);
    }

private:
    std::map<std::string, std::string> given_;
};

// Rows of a round, or those of one branch.
struct Batch {
    double* values{nullptr};
    std::uint32_t rows{0};
    int written_on{-1};  // the simulated core that has them in its caches
    struct Round* round{nullptr};
};

struct Round {
    std::vector<double> values;
    Batch whole;
    std::vector<Batch> parts;
};

struct Operator {
    int flops{0};
};

// The program's: the work on a batch, and what happens when a round has come to the sink.
void perform(Operator& op, Batch& batch);
void came_to_sink(std::int64_t serial, Batch& batch);

class Graph {
public:
    explicit Graph(const Options& options)
        : lanes(options.count("lanes", 1)), rounds(options.count("rounds", 1000)), warm(options.count("warm", 300)),
          rows(static_cast<std::uint32_t>(options.count("rows", 512))), flow(settings(options)),
          shape_(options.word("shape", "pipeline")), model_(options.word("model", "dynamic")),
          stages_(options.word("stages", "chained")) {
        const int operators = options.count("operators", 1000);
        if (model_ != "dedicated") main_ = &flow.add_pool(std::make_unique<ChooseLatest>(true));
        const int width = shape_ == "wide" ? operators : shape_ == "mixed" ? options.count("width", 10) : 1;
        const int depth = shape_ == "wide" ? 1 : operators / width;
        make_rounds(width);
        for (int i = 0; i < width * depth; ++i) {
            operators_.push_back(std::make_unique<Operator>());
            operators_.back()->flops = options.count("flops", 1);
        }
        if (model_ == "manual") make_fused(width, depth);
        else make_stages(width, depth);
        flow.finish_graph();
    }

    // A thread of the graph: a pool, and the lane's number once it was added.
    struct Lane {
        Pool* pool;
        std::uint32_t number;
    };

    // In the dynamic model as many as `lanes`, in the dedicated one as many as operators, in the manual none.
    template <class Wake>
    std::vector<Lane> add_lanes(Wake wake, const std::vector<void*>& selves) {
        std::vector<Lane> made;
        for (Pool* pool : pools()) made.push_back({pool, pool->add_lane(all_lanes, wake, selves[made.size()])});
        return made;
    }
    std::vector<Pool*> pools() const {
        if (model_ == "manual") return {};
        return model_ == "dedicated" ? own_ : std::vector<Pool*>(static_cast<std::size_t>(lanes), main_);
    }

    // The sender: the next round, once there is room. In the manual model it is worked on at once.
    void admit() {
        Round& round = *rounds_[static_cast<std::size_t>(flow.admitted()) % rounds_.size()];
        perform(source_, round.whole);
        void* batch = &round.whole;
        flow.admit(&batch);
        if (fused_ != nullptr) fused_->work_through();
    }

    std::int64_t last() const { return warm + rounds; }
    std::size_t operators() const { return operators_.size(); }

    const int lanes;
    const std::int64_t rounds, warm;
    const std::uint32_t rows;
    Flow flow;

private:
    static Flow::Settings settings(const Options& options) {
        Flow::Settings settings;
        settings.window = static_cast<std::uint32_t>(options.count("window", 256));
        settings.marker_every = 0;
        return settings;
    }

    // As many as can be on their way: a round's place is free again once it has left.
    void make_rounds(int width) {
        for (std::uint32_t i = 0; i < flow.settings.window; ++i) {
            rounds_.push_back(std::make_unique<Round>());
            Round& round = *rounds_.back();
            double* values = aligned(round.values, rows);
            round.whole = {values, rows, -1, &round};
            if (width == 1) continue;
            for (int branch = 0; branch < width; ++branch) {
                const auto share = static_cast<std::uint32_t>(rows * std::uint64_t(branch + 1) / width -
                                                              rows * std::uint64_t(branch) / width);
                round.parts.push_back({values, share, -1, &round});
                values += share;
            }
        }
    }

    static void* process(void* self, std::int64_t, void** inputs, RowTotals& counts) {
        auto* batch = static_cast<Batch*>(inputs[0]);
        if (batch == nullptr) return nullptr;
        counts.taken += batch->rows, counts.given += batch->rows;
        perform(*static_cast<Operator*>(self), *batch);
        return batch;
    }
    static void* split(void*, std::int64_t, void** inputs, RowTotals& counts) {
        auto* batch = static_cast<Batch*>(inputs[0]);
        counts.taken += batch->rows, counts.given += batch->rows;
        for (Batch& part : batch->round->parts) part.written_on = batch->written_on;
        return batch;
    }
    static void* pick(void*, void* output, std::uint32_t edge) {
        Batch& part = static_cast<Batch*>(output)->round->parts[edge];
        return part.rows != 0 ? &part : nullptr;
    }
    static void* end(void* self, std::int64_t serial, void** inputs, RowTotals& counts) {
        auto& graph = *static_cast<Graph*>(self);
        Batch* some = nullptr;
        for (std::size_t i = 0; i < graph.inputs_; ++i)
            if (inputs[i] != nullptr) some = static_cast<Batch*>(inputs[i]), counts.taken += some->rows;
        if (graph.came_++ != serial) Options::fail("a round is out of order");
        came_to_sink(serial, some->round->whole);
        return nullptr;
    }
    static void discard(void*, void*) {}

    static Work work_of(Operator& op) { return {&op, process, nullptr, discard, nullptr, nullptr}; }
    Work split_work() { return {this, split, pick, discard, nullptr, nullptr}; }
    Work end_work() { return {this, end, nullptr, discard, nullptr, nullptr}; }

    Pool& pool_for_next() {
        if (model_ != "dedicated") return *main_;
        own_.push_back(&flow.add_pool(std::make_unique<ChooseLatest>(true)));
        return *own_.back();
    }

    void make_stages(int width, int depth) {
        Stage* splitter = nullptr;
        if (width > 1) {
            splitter = &flow.add_ordered(pool_for_next(), split_work(), all_lanes, 1);
            flow.add_entry(*splitter, 0);
        }
        std::vector<Stage*> lasts;
        for (int branch = 0; branch < width; ++branch) {
            Stage* last = splitter;
            for (int i = 0; i < depth;) {
                Stage& stage = add(branch * depth + i, depth - i);
                if (last != nullptr) flow.connect(*last, stage, 0);
                else flow.add_entry(stage, 0);
                last = &stage;
                i += is_chained() ? chain_length(depth - i) : 1;
            }
            lasts.push_back(last);
        }
        inputs_ = lasts.size();
        Stage& sink = flow.add_ordered(pool_for_next(), end_work(), all_lanes, static_cast<std::uint32_t>(inputs_));
        for (std::size_t i = 0; i < lasts.size(); ++i) flow.connect(*lasts[i], sink, static_cast<std::uint32_t>(i));
    }

    bool is_chained() const { return stages_ == "chained" && model_ == "dynamic"; }
    static int chain_length(int left) { return std::min(left, static_cast<int>(Chain::most_members)); }

    Stage& add(int first, int left) {
        Operator& op = *operators_[static_cast<std::size_t>(first)];
        const auto most = static_cast<std::uint32_t>(lanes);
        if (model_ == "dedicated" || stages_ == "ordered")
            return flow.add_ordered(pool_for_next(), work_of(op), all_lanes, 1);
        if (!is_chained() || left == 1) return flow.add_shared(*main_, work_of(op), all_lanes, most);
        Chain& chain = flow.make_chain(most);
        for (int i = 0; i < chain_length(left); ++i)
            chain.add_member(work_of(*operators_[static_cast<std::size_t>(first + i)]));
        return flow.add_shared(*main_, chain.work(), all_lanes, most);
    }

    void make_fused(int width, int depth) {
        fused_ = &flow.add_fused(*main_, all_lanes);
        const std::uint32_t splitter = width > 1 ? fused_->add_member(split_work(), 1) : 0;
        std::vector<std::uint32_t> lasts;
        for (int i = 0; i < width * depth; ++i) {
            const auto here = fused_->add_member(work_of(*operators_[static_cast<std::size_t>(i)]), 1);
            if (i % depth != 0) fused_->connect_within(here - 1, here, 0);
            else if (width > 1) fused_->connect_within(splitter, here, 0);
            if ((i + 1) % depth == 0) lasts.push_back(here);
        }
        inputs_ = lasts.size();
        const auto sink = fused_->add_member(end_work(), static_cast<std::uint32_t>(inputs_));
        for (std::size_t i = 0; i < lasts.size(); ++i)
            fused_->connect_within(lasts[i], sink, static_cast<std::uint32_t>(i));
        fused_->open(0, 0);
        fused_->finish();
        flow.add_entry(*fused_, 0);
    }

    const std::string shape_, model_, stages_;
    Pool* main_{nullptr};
    std::vector<Pool*> own_;
    FusedStage* fused_{nullptr};
    std::vector<std::unique_ptr<Operator>> operators_;
    std::vector<std::unique_ptr<Round>> rounds_;
    Operator source_;
    std::size_t inputs_{1};
    std::int64_t came_{0};
};

}  // namespace shapes
