// Several operators as one stage, which one lane runs by plain calls: the threading model `manual` (Schneider and
// Wu 2017, section 2.2).
//
// A round passes the members one after the other, in topological order. The output of one is in a slot until
// the next takes it. So nothing waits between members, and an operator costs a call. There is no recursion, even
// in a long chain. Only inputs from outside have rings, as in an ordered stage. Output goes to other stages in
// order, because there is one lane at a time.
//
// Each member has figures. Rows are exact. Time is sampled, because two readings of the clock cost more than
// most operators' rounds.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <vector>

#include "callboard/core/clock.hpp"
#include "callboard/core/one_at_a_time.hpp"
#include "callboard/mailbox/ordered/spsc.hpp"
#include "callboard/scheduling/flow/stage.hpp"

namespace callboard {

class FusedStage final : public Stage, OneAtATime<Consumer> {
public:
    // One of `sample_every` rounds is timed, member by member; 0: none.
    FusedStage(const Setup& setup, std::uint32_t window, std::uint32_t sample_every)
        : Stage(setup, Work{}), window_(window), sample_every_(sample_every) {}

    // --- construction, before the first round ------------------------------------------------------

    // Members are added in topological order. A member that listens is called without input, too. Returns the
    // member's number.
    std::uint32_t add_member(const Work& work, std::uint32_t inputs, bool listens = false) {
        assert(inputs != 0);
        figures_.emplace_back();
        members_.push_back({work, &figures_.back(), static_cast<std::uint32_t>(slots_.size()), inputs, listens});
        any_listens_ |= listens;
        slots_.resize(slots_.size() + inputs);
        return static_cast<std::uint32_t>(members_.size() - 1);
    }

    // The edges of a member in the order in which its Work picks.
    void connect_within(std::uint32_t from, std::uint32_t to, std::uint32_t input) {
        assert(from < to);
        assert(to < members_.size() && input < members_[to].inputs);
        members_[from].edges.push_back({nullptr, members_[to].first_slot + input});
    }
    void connect_out(std::uint32_t from, Stage& to, std::uint32_t input) {
        assert(from < members_.size());
        members_[from].edges.push_back({&to.entrance(), input});
        members_[from].to_outside = true;
        connect(to.entrance(), input);  // for readers of the graph
    }

    // Opens an input of a member to the outside; returns the stage's input.
    std::uint32_t open(std::uint32_t to, std::uint32_t input) {
        assert(to < members_.size() && input < members_[to].inputs);
        members_[to].from_outside = true;
        inlets_.push_back(std::make_unique<Inlet>(window_, members_[to].first_slot + input));
        return static_cast<std::uint32_t>(inlets_.size() - 1);
    }

    // When all edges have been added.
    void finish() {
        for (auto& member : members_) is_sink_ |= member.edges.empty();
    }

    Figures figures_of(std::uint32_t member) const { return {&figures_[member], 0, 1}; }

    bool is_sink() const override { return is_sink_; }

    // For a thread that runs the stage alone, outside of any lane: works on all rounds that wait.
    void work_through() {
        RowTotals counts;
        [[maybe_unused]] const bool entered = enter();
        assert(entered);
        work(counts, std::numeric_limits<double>::infinity(), 0);
        leave();
    }

    // --- rounds ------------------------------------------------------------------------------------

    std::int64_t waiting() const override {
        std::int64_t least = inlets_[0]->brought.load(seq_cst);
        for (auto& inlet : inlets_) least = std::min(least, inlet->brought.load(seq_cst));
        return least - next_.load(relaxed);
    }

    void put(std::uint32_t input, std::int64_t serial, void* batch) override {
        if (batch == nullptr && pass_empty(serial)) return;
        Inlet& to = *inlets_[input];
        assert(to.brought.load(relaxed) == serial && "an input's rounds come in order");
        [[maybe_unused]] const bool fits = to.ring.try_push(batch);
        assert(fits);
        to.brought.store(serial + 1, seq_cst);
        if (inlets_.size() == 1 || completes(serial)) announce();
    }

    std::int64_t work(RowTotals& counts, double rows, std::uint32_t) override {
        const Alone<Consumer> alone(*this);  // rule 1 of stage.hpp
        std::int64_t rounds = 0;
        while (is_less(rounds, counts, rows) && work_on_next(counts)) ++rounds;
        return rounds;
    }

private:
    struct Edge {
        Stage* to;            // null: within
        std::uint32_t input;  // or the slot
    };
    struct Member {
        Work work;
        Figure* figure;
        std::uint32_t first_slot, inputs;
        bool listens;
        bool from_outside{false}, to_outside{false};
        std::vector<Edge> edges{};
    };
    struct Inlet {
        Inlet(std::uint32_t window, std::uint32_t slot) : slot(slot), ring(window) {}
        const std::uint32_t slot;
        alignas(cache_line) Atomic<std::int64_t> brought{0};  // rounds, in all; written by the thread that puts
        Spsc<void*> ring;
    };

    // As in an ordered stage: only the thread that put the last part of a round announces it.
    bool completes(std::int64_t serial) {
        auto input = missing_.load(relaxed);
        for (std::size_t i = 0; i < inlets_.size(); ++i) {
            if (inlets_[input]->brought.load(seq_cst) <= serial) return missing_.store(input, relaxed), false;
            input = input + 1 == inlets_.size() ? 0 : input + 1;
        }
        return true;
    }

    // As in an ordered stage. No member is called, so none may listen.
    bool pass_empty(std::int64_t serial) {
        if (any_listens_ || inlets_.size() != 1 || depth == most_depth || waiting() > 0 || !enter()) return false;
        const bool is_next = waiting() <= 0;
        if (is_next) {
            const Alone<Consumer> alone(*this);
            assert(next_.load(relaxed) == serial && "nothing came before");
            ++depth;
            note_beginning(serial);
            next_.store(serial + 1, relaxed);
            inlets_[0]->brought.store(serial + 1, relaxed);
            RowTotals none;
            pass<false>(serial, none);
            if (is_sink_) leave_flow(serial);
            --depth;
        }
        leave();
        return is_next;
    }

    bool work_on_next(RowTotals& counts) {
        if (waiting() <= 0 || rests()) return false;
        for (auto& inlet : inlets_) {
            assert(slots_[inlet->slot] == nullptr && "the last batch has been taken");
            [[maybe_unused]] const bool found = inlet->ring.try_pop(slots_[inlet->slot]);
            assert(found);
        }
        const auto serial = next_.load(relaxed);
        next_.store(serial + 1, relaxed);
        note_beginning(serial);
        if (sample_every_ != 0 && is_sampled(serial, sample_every_)) pass<true>(serial, counts);
        else pass<false>(serial, counts);
        if (is_sink_) leave_flow(serial);
        return true;
    }

    // Passes a round through all members. A member without input gives nothing, and is called only if it listens.
    template <bool sampled>
    void pass(std::int64_t serial, RowTotals& counts) {
        std::int64_t time = sampled ? monotonic_ns() : 0;
        for (Member& member : members_) {
            void** const inputs = &slots_[member.first_slot];
            void* output = nullptr;
            if (member.listens || something_in(inputs, member.inputs)) {
                RowTotals rows;
                output = member.work.process(member.work.self, serial, inputs, rows);
                inputs[0] = nullptr;
                for (std::uint32_t i = 1; i < member.inputs; ++i) inputs[i] = nullptr;
                member.figure->count(rows);
                if (member.from_outside) counts.taken += rows.taken;
                if (member.to_outside) counts.given += rows.given;
                if (sampled) {
                    const auto now = monotonic_ns();
                    member.figure->sample(rows, now - time);
                    time = now;
                }
            } else if (!member.to_outside) {
                continue;
            }
            hand_on(member, serial, output);
        }
    }

    static bool something_in(void** inputs, std::uint32_t count) {
        for (std::uint32_t i = 0; i < count; ++i)
            if (inputs[i] != nullptr) return true;
        return false;
    }

    void hand_on(Member& member, std::int64_t serial, void* output) {
        const Work& work = member.work;
        for (std::size_t i = 0; i < member.edges.size(); ++i) {
            const auto edge = member.edges[i];
            void* batch = output;
            if (output != nullptr && work.pick != nullptr)
                batch = work.pick(work.self, output, static_cast<std::uint32_t>(i));
            assert((edge.to != nullptr || slots_[edge.input] == nullptr) && "the last batch has been taken");
            if (edge.to == nullptr) slots_[edge.input] = batch;
            else edge.to->put(edge.input, serial, batch);
        }
        if (member.edges.empty() && output != nullptr) work.discard(work.self, output);
    }

    const std::uint32_t window_, sample_every_;
    bool is_sink_{false}, any_listens_{false};
    std::vector<Member> members_;
    std::deque<Figure> figures_;  // never moved
    std::vector<void*> slots_;  // of the one lane: each member's inputs, null between rounds
    std::vector<std::unique_ptr<Inlet>> inlets_;
    alignas(cache_line) Atomic<std::int64_t> next_{0};  // the round that the one lane takes next
    Atomic<std::size_t> missing_{0};  // an inlet that lacked its part of that round at the last look
};

}  // namespace callboard
