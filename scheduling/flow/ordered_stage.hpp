// A stateful stage, or one where one lane is all there is: a ring for each input, one lane at a time, and
// output in the order of input.
#pragma once

#include "callboard/core/clock.hpp"
#include "callboard/mailbox/ordered/spsc.hpp"
#include "callboard/scheduling/flow/stage.hpp"

namespace callboard {

class OrderedStage final : public Stage {
public:
    OrderedStage(const Site& site, const Work& work, std::uint32_t inputs, std::uint32_t window)
        : Stage(site, work), batches_(inputs) {
        for (std::uint32_t i = 0; i < inputs; ++i) inlets_.push_back(std::make_unique<Inlet>(window));
    }

    std::int64_t waiting() const override {
        std::int64_t least = inlets_[0]->brought.load(seq_cst);
        for (std::size_t i = 1; i < inlets_.size(); ++i) {
            const auto here = inlets_[i]->brought.load(seq_cst);
            if (here < least) least = here;
        }
        return least - next_.load(relaxed);
    }

    void put(std::uint32_t input, std::int64_t serial, void* batch) override {
        if (batch == nullptr && pass_empty(serial)) return;
        Inlet& to = *inlets_[input];
        [[maybe_unused]] const bool fits = to.ring.try_push(batch);
        assert(fits);
        to.brought.store(serial + 1, seq_cst);
        announce();
    }

    std::int64_t work(RowCounts& counts, double rows) override {
        std::int64_t rounds = 0;
        while (is_less(rounds, counts, rows) && work_on_next(counts)) ++rounds;
        return rounds;
    }

private:
    struct Inlet {
        explicit Inlet(std::uint32_t window) : ring(window) {}
        alignas(cache_line) Atomic<std::int64_t> brought{0};  // rounds, in all; who puts
        Spsc<void*> ring;
    };

    // Who puts an empty round into a stage that has nothing to do lets it pass: no lane is woken for
    // it, nor the interpreter wanted. Nothing comes meanwhile, as one thread puts at a time.
    bool pass_empty(std::int64_t serial) {
        if (inlets_.size() != 1 || waiting() > 0 || !enter()) return false;
        const bool is_next = waiting() <= 0;
        if (is_next) {
            note_beginning(serial);
            next_.store(serial + 1, relaxed);
            inlets_[0]->brought.store(serial + 1, relaxed);
            deliver(nullptr);
        }
        leave();
        return is_next;
    }

    bool work_on_next(RowCounts& counts) {
        if (waiting() <= 0 || rests()) return false;
        for (std::size_t i = 0; i < inlets_.size(); ++i) {
            [[maybe_unused]] const bool found = inlets_[i]->ring.try_pop(batches_[i]);
            assert(found);
        }
        const auto serial = next_.load(relaxed);
        next_.store(serial + 1, relaxed);
        note_beginning(serial);
        deliver(work_.process(work_.self, serial, batches_.data(), counts));
        return true;
    }

    // The round before may have made the operator rest.
    bool rests() const {
        const auto until = not_before();
        return until != 0 && monotonic_ns() < until;
    }

    std::vector<std::unique_ptr<Inlet>> inlets_;
    std::vector<void*> batches_;                        // of the one lane, for the round that it takes
    alignas(cache_line) Atomic<std::int64_t> next_{0};  // the round that the one lane takes next
};

}  // namespace callboard
