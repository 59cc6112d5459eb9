// A chain: native stateless operators in a row, as the work of one stage (operator fusion). A round passes them by
// plain calls on the lane that took it, and is put in order once, behind the last operator. So the caches keep it,
// and lanes do not wait for each other at each operator.
//
// Operators that must know the number of earlier rows cannot be in a chain, because rounds reach its members in any
// order. An operator in Python names the row at which it failed; native ones do not.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>

#include "callboard/core/clock.hpp"
#include "callboard/scheduling/flow/stage.hpp"

namespace callboard {

class Chain {
public:
    // A lane passes a chain without a break, while other actors of its worker wait.
    static constexpr std::uint32_t most_members = 16;

    // For at most `lanes` lanes at a time. One of `sample_every` rounds is timed, member by member.
    Chain(std::uint32_t lanes, std::uint32_t sample_every)
        : lanes_(lanes), sample_every_(sample_every), of_lanes_(std::make_unique<OfLane[]>(lanes)) {}
    Chain(const Chain&) = delete;

    // Before the first round, in the order of the graph. Each has one input, and all but the last one edge.
    void add_member(const Work& work) {
        assert(count_ < most_members);
        members_[count_++] = work;
    }

    // The work of its stage. Any time; the members may be added later.
    Work work() { return {this, process, pick, discard, nullptr, nullptr}; }

    Figures figures_of(std::uint32_t member) const {
        assert(member < most_members && lanes_ != 0);
        return {&of_lanes_[0].figures[member], sizeof(OfLane), lanes_};
    }

private:
    // The figures that one lane at a time writes. Plain additions suffice; locked ones would cost two for each
    // member and round.
    struct alignas(cache_line) OfLane {
        Atomic<bool> is_taken{false};
        Figure figures[most_members];
    };

    static Chain& of(void* self) { return *static_cast<Chain*>(self); }

    static void* process(void* self, std::int64_t serial, void** inputs, RowTotals& counts) {
        Chain& chain = of(self);
        void* const batch = inputs[0];
        if (batch == nullptr) return nullptr;
        OfLane& own = chain.take();
        const bool sampled = is_sampled(serial, chain.sample_every_) || !own.figures[0].has_sample();
        void* const output = sampled ? chain.pass<true>(own, serial, batch, counts)
                                     : chain.pass<false>(own, serial, batch, counts);
        assert(own.is_taken.load(relaxed) && "the lane is this round's");
        own.is_taken.store(false, release);  // pairs with take()
        return output;
    }

    // One is free, because there are as many of these as lanes that may be here. A thread tries the same
    // one first each time: it chooses by the address of its stack.
    OfLane& take() {
        const char here = 0;
        for (auto i = reinterpret_cast<std::uintptr_t>(&here) >> 16;; ++i) {
            OfLane& lane = of_lanes_[i % lanes_];
            if (!lane.is_taken.load(relaxed) && !lane.is_taken.exchange(true, acquire)) return lane;
        }
    }

    // Passes a round through all members, until nothing is left of it.
    template <bool sampled>
    void* pass(OfLane& own, std::int64_t serial, void* batch, RowTotals& counts) {
        std::int64_t time = sampled ? monotonic_ns() : 0;
        RowTotals rows;
        for (std::uint32_t i = 0; i < count_; ++i) {
            const Work& member = members_[i];
            rows = {};
            batch = member.process(member.self, serial, &batch, rows);
            if (i == 0) counts.taken += rows.taken;
            own.figures[i].count(rows);
            if (sampled) {
                const auto now = monotonic_ns();
                own.figures[i].sample(rows, now - time);
                time = now;
            }
            if (batch == nullptr) return nullptr;
        }
        counts.given += rows.given;
        return batch;
    }

    static void* pick(void* self, void* output, std::uint32_t edge) {
        const Work& last = of(self).last();
        return last.pick != nullptr ? last.pick(last.self, output, edge) : output;
    }

    static void discard(void* self, void* output) {
        const Work& last = of(self).last();
        last.discard(last.self, output);
    }

    const Work& last() const {
        assert(count_ != 0);
        return members_[count_ - 1];
    }

    const std::uint32_t lanes_, sample_every_;
    std::uint32_t count_{0};
    Work members_[most_members];
    const std::unique_ptr<OfLane[]> of_lanes_;
};

}  // namespace callboard
