// A chain: native operators that need no order, one behind the other, as the work of one stage. A round passes them
// by plain calls on the lane that took it, and is put in order once, behind the last: so the caches keep it, and
// lanes do not wait for each other at each operator.
//
// It is not for operators that must know how many rows came before theirs: an operator in Python names the row
// that it failed at, and rounds come to a chain's inside in any order. Native ones do not.
#pragma once

#include <cstdint>
#include <deque>

#include "callboard/core/clock.hpp"
#include "callboard/scheduling/flow/stage.hpp"

namespace callboard {

class Chain {
public:
    // Several lanes may be at work on it, or one. One of `sample_every` rounds is timed, member by member.
    Chain(bool is_shared, std::uint32_t sample_every) : is_alone_(!is_shared), sample_every_(sample_every) {}
    Chain(const Chain&) = delete;

    // Before the first round, in the order of the graph. Each has one input, and all but the last one edge.
    void add_member(const Work& work) { members_.emplace_back(work); }

    // What its stage does. Any time; the members may be added later.
    Work work() { return {this, process, pick, discard, nullptr, nullptr}; }

    const Figures& figures_of(std::uint32_t member) const { return members_[member].figures; }

private:
    struct Member {
        explicit Member(const Work& work) : work(work) {}
        const Work work;
        Figures figures{};
    };

    static Chain& of(void* self) { return *static_cast<Chain*>(self); }

    static void* process(void* self, std::int64_t serial, void** inputs, RowCounts& counts) {
        Chain& chain = of(self);
        return serial % chain.sample_every_ == 0 ? chain.pass<true>(serial, inputs[0], counts)
                                                 : chain.pass<false>(serial, inputs[0], counts);
    }

    // A round through all members, until nothing is left of it.
    template <bool sampled>
    void* pass(std::int64_t serial, void* batch, RowCounts& counts) {
        std::int64_t time = sampled ? monotonic_ns() : 0;
        RowCounts rows;
        bool first = true;
        for (Member& member : members_) {
            if (batch == nullptr) return nullptr;
            rows = {};
            batch = member.work.process(member.work.self, serial, &batch, rows);
            if (first) counts.taken += rows.taken;
            first = false;
            member.figures.count(rows, is_alone_);
            if (sampled) {
                const auto now = monotonic_ns();
                member.figures.sample(rows, now - time, is_alone_);
                time = now;
            }
        }
        counts.given += rows.given;
        return batch;
    }

    static void* pick(void* self, void* output, std::uint32_t edge) {
        const Work& last = of(self).members_.back().work;
        return last.pick != nullptr ? last.pick(last.self, output, edge) : output;
    }

    static void discard(void* self, void* output) {
        const Work& last = of(self).members_.back().work;
        last.discard(last.self, output);
    }

    const bool is_alone_;
    const std::uint32_t sample_every_;
    std::deque<Member> members_;  // where they stay
};

}  // namespace callboard
