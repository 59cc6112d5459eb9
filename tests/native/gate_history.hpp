// Recorded histories of a gate, and a search for an order of their calls that explains all answers.
//
// After Wing and Gong 1993, "Testing and verifying concurrent objects". One of the calls that began before any
// other ended comes first. The search takes each in turn, asks the model, and goes on with the rest where the
// model gives the same answer. The numbers of calls that each thread has done determine the model's state, so the
// search visits them only once.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "gate_model.hpp"
#include "history.hpp"

struct GateCall {
    enum class What { add, come_to, next };

    What what;
    unsigned index;  // of the source or reader
    std::int64_t time, value;
    bool answer = true;  // come_to() has none
    Entry entry{};       // of next, if there was one
    std::int64_t begin = history::never, end = history::never;
};

class GateHistory {
public:
    // A vector of calls for each thread.
    GateHistory(std::vector<std::vector<GateCall>> threads, GateModel model)
        : threads_(std::move(threads)), model_(std::move(model)) {}

    bool linearizable() { return go_on(std::vector<std::size_t>(threads_.size(), 0), model_); }

private:
    bool go_on(const std::vector<std::size_t>& done, const GateModel& model) {
        std::int64_t first_end = history::never;
        for (std::size_t i = 0; i < threads_.size(); ++i)
            if (done[i] < threads_[i].size()) first_end = std::min(first_end, threads_[i][done[i]].end);
        if (first_end == history::never) return true;
        if (!searched_.insert(done).second) return false;
        for (std::size_t i = 0; i < threads_.size(); ++i) {
            if (done[i] == threads_[i].size() || threads_[i][done[i]].begin > first_end) continue;
            GateModel then = model;
            if (!gives_its_answer(then, threads_[i][done[i]])) continue;
            std::vector<std::size_t> more = done;
            ++more[i];
            if (go_on(more, then)) return true;
        }
        return false;
    }

    static bool gives_its_answer(GateModel& model, const GateCall& call) {
        Entry entry{};
        switch (call.what) {
            case GateCall::What::add: return model.try_add(call.index, call.time, call.value) == call.answer;
            case GateCall::What::come_to: return model.come_to(call.index, call.time), true;
            case GateCall::What::next: break;
        }
        return model.try_next(call.index, entry) == call.answer && entry == call.entry;
    }

    const std::vector<std::vector<GateCall>> threads_;
    const GateModel model_;
    std::set<std::vector<std::size_t>> searched_;
};
