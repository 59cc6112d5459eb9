// A stateful stage, or one with a single lane: an inlet for each input, one lane at a time, and output in the
// order of input.
//
// A round's batch lies in the slot of its serial number. The thread that puts counts rounds in `brought`, the lane
// counts them in `next_`; the rounds between the two wait.
//
// An inlet begins with a few slots, which suffice while rows are handled as they come. So a stage is small, and a
// large graph fits into the caches. The first round that finds the slots taken makes a ring for the whole window;
// it and all later rounds go there (`ring_from`). The ring is never full, because at most `window` rounds are in
// flight. Round k + window is put when round k has left the graph, so its slot has been read.
#pragma once

#include <algorithm>
#include <cassert>

#include "callboard/core/one_at_a_time.hpp"
#include "callboard/mailbox/ordered/ring.hpp"
#include "callboard/scheduling/flow/stage.hpp"

namespace callboard {

class OrderedStage final : public Stage, OneAtATime<Consumer> {
public:
    OrderedStage(const Setup& setup, const Work& work, std::uint32_t inputs, std::uint32_t window)
        : Stage(setup, work), window_(window), batches_(inputs > 1 ? inputs : 0) {
        for (std::uint32_t i = 1; i < inputs; ++i) others_.push_back(std::make_unique<Inlet>());
    }

    // With many inputs, it is mostly enough to look at the one that lacked its part at the last look.
    std::int64_t waiting() const override {
        const auto at_missing = inlet(missing_.load(relaxed)).brought.load(seq_cst) - next_.load(relaxed);
        if (at_missing <= 0) return at_missing;
        std::int64_t least = first_.brought.load(seq_cst);
        for (auto& inlet : others_) least = std::min(least, inlet->brought.load(seq_cst));
        return least - next_.load(relaxed);
    }

    void put(std::uint32_t input, std::int64_t serial, void* batch) override {
        if (batch == nullptr && pass_empty(serial)) return;
        Inlet& to = inlet(input);
        assert(to.brought.load(relaxed) == serial && "an input's rounds come in order");
        assert(serial - next_.load(relaxed) < window_ && "the ring is never full");
        // Acquire pairs with the lane that has read the slot.
        if (!to.has_ring(serial) && serial - next_.load(acquire) >= Inlet::few) to.make_ring(serial, window_);
        to.slot(serial) = batch;
        to.brought.store(serial + 1, seq_cst);
        if (others_.empty() || completes(serial)) announce();
    }

    std::int64_t work(RowTotals& counts, double rows, std::uint32_t) override {
        const Alone<Consumer> alone(*this);  // rule 1 of stage.hpp
        std::int64_t rounds = 0;
        while (is_less(rounds, counts, rows) && work_on_next(counts)) ++rounds;
        return rounds;
    }

private:
    // Only the thread that puts writes here. One cache line, whatever the number of waiting rounds.
    struct alignas(cache_line) Inlet {
        static constexpr std::int64_t few = 4;

        Atomic<std::int64_t> brought{0};  // rounds, in all
        Atomic<std::int64_t> ring_from{INT64_MAX};
        std::unique_ptr<Ring<void*>> ring;
        void* slots[few];

        // The thread that puts, and the lane, for a round that was brought. Relaxed: if the ring is made at the
        // same time, it is for later rounds. If it was made for this round or an earlier one, a thread that sees
        // `brought` sees it.
        bool has_ring(std::int64_t serial) const { return serial >= ring_from.load(relaxed); }
        void*& slot(std::int64_t serial) {
            assert(!has_ring(serial) || ring != nullptr);
            return has_ring(serial) ? (*ring)[serial] : slots[serial % few];
        }

        void make_ring(std::int64_t serial, std::uint32_t window) {
            assert(ring == nullptr && serial >= few);
            ring = std::make_unique<Ring<void*>>(window);
            ring_from.store(serial, relaxed);
        }
    };

    Inlet& inlet(std::size_t input) { return input == 0 ? first_ : *others_[input - 1]; }
    const Inlet& inlet(std::size_t input) const { return input == 0 ? first_ : *others_[input - 1]; }

    // Only the thread that put the last part of a round announces it. It begins to look where a part was missing the
    // last time: an input that lacks one round lacks all later ones. So with many inputs, it looks at each about once
    // for a round, whatever the number of waiting rounds.
    bool completes(std::int64_t serial) {
        const auto inputs = others_.size() + 1;
        auto input = missing_.load(relaxed);
        for (std::size_t i = 0; i < inputs; ++i) {
            if (inlet(input).brought.load(seq_cst) <= serial) return missing_.store(input, relaxed), false;
            input = input + 1 == inputs ? 0 : input + 1;
        }
        return true;
    }

    // No other round arrives during this, because one thread puts at a time.
    bool pass_empty(std::int64_t serial) {
        if (!others_.empty() || depth == most_depth || waiting() > 0 || !enter()) return false;
        const bool is_next = waiting() <= 0;
        if (is_next) {
            const Alone<Consumer> alone(*this);
            assert(first_.brought.load(relaxed) == serial && next_.load(relaxed) == serial && "nothing came before");
            ++depth;
            note_beginning(serial);
            next_.store(serial + 1, relaxed);
            first_.brought.store(serial + 1, relaxed);
            deliver(nullptr);
            --depth;
        }
        leave();
        return is_next;
    }

    bool work_on_next(RowTotals& counts) {
        if (waiting() <= 0 || rests()) return false;
        const auto serial = next_.load(relaxed);
        assert(first_.brought.load(relaxed) > serial && "the round has been brought");
        void* batch = first_.slot(serial);
        void** batches = &batch;
        if (!others_.empty()) {
            for (std::size_t i = 0; i < others_.size(); ++i) batches_[i + 1] = others_[i]->slot(serial);
            batches = batches_.data();
            batches[0] = batch;
        }
        next_.store(serial + 1, release);  // pairs with put(): the slots have been read
        note_beginning(serial);
        deliver(work_.process(work_.self, serial, batches, counts));
        return true;
    }

    Atomic<std::int64_t> next_{0};  // the round that the one lane takes next
    Atomic<std::size_t> missing_{0};  // an input that lacked its part of that round at the last look
    std::vector<std::unique_ptr<Inlet>> others_;
    Inlet first_;
    const std::uint32_t window_;
    std::vector<void*> batches_;  // of the one lane, for the round that it takes; of several inputs
};

}  // namespace callboard
