// A stage whose operator waits for answers from elsewhere, without occupying a lane: one lane at a time, and output in
// the order of input.
//
// The operator begins each round as it arrives, with as many rows as it may. A round is finished when its answers are
// there, and leaves when the earlier rounds have. So several rounds are in the operator at a time, and a lane is there
// only for moments: when a round has come, and when an answer has.
//
// Both events call() the stage, and only then does it wait for a lane. Suppose that work is left. Either it came
// before the lane took `called_` back, and the lane sees it, because it looks after that. Or it came later, and
// `called_` is set again.
#pragma once

#include <cassert>

#include "callboard/core/one_at_a_time.hpp"
#include "callboard/mailbox/ordered/ring.hpp"
#include "callboard/scheduling/flow/stage.hpp"

namespace callboard {

class AnsweringStage final : public Stage, OneAtATime<Consumer> {
public:
    AnsweringStage(const Setup& setup, const Work& work, std::uint32_t window)
        : Stage(setup, work), window_(window), batches_(window) {}

    // Sequentially consistent, for the rules of pool.hpp.
    std::int64_t waiting() const override { return called_.load(seq_cst); }

    void put([[maybe_unused]] std::uint32_t input, std::int64_t serial, void* batch) override {
        assert(input == 0 && brought_.load(relaxed) == serial && "an input's rounds come in order");
        assert(serial - taken_.load(relaxed) < window_ && "the ring is never full");
        batches_[serial] = batch;
        brought_.store(serial + 1, release);  // pairs with the lane
        call();
    }

    // Any thread: there is new work. Sequentially consistent: it publishes what waits, as pool.hpp says.
    void call() {
        if (called_.exchange(1, seq_cst) == 0) announce();
    }

    std::int64_t work(RowTotals& counts, double rows, std::uint32_t) override {
        const Alone<Consumer> alone(*this);  // rule 1 of stage.hpp
        std::int64_t rounds = 0;
        called_.exchange(0, seq_cst);  // reads what the last call() wrote, so what came before that is seen
        while (is_less(rounds, counts, rows)) {
            void* output = nullptr;
            if (work_.next(work_.self, &output, counts)) {
                deliver(output);
                ++rounds;
            } else if (!take()) {
                return rounds;
            }
        }
        called_.store(1, seq_cst);  // it goes on; the lane sees that when it leaves
        return rounds;
    }

private:
    bool take() {
        const auto serial = taken_.load(relaxed);
        if (serial == brought_.load(acquire)) return false;
        void* batch = batches_[serial];
        taken_.store(serial + 1, relaxed);
        note_beginning(serial);
        RowTotals none;  // rows count when they leave
        work_.process(work_.self, serial, &batch, none);
        return true;
    }

    const std::int64_t window_;
    Ring<void*> batches_;
    Atomic<std::int64_t> brought_{0};  // rounds
    Atomic<std::int64_t> taken_{0};
    alignas(cache_line) Atomic<std::int64_t> called_{0};  // 0 or 1
};

}  // namespace callboard
