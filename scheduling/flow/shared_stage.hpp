// A stateless stage: a ring that any number of lanes take from, and a reorder buffer.
//
// Benchmarks make it with another reorder buffer (tests/bench/peers/reorder_locked.hpp).
#pragma once

#include <algorithm>
#include <cassert>

#include "callboard/mailbox/ordered/reorder.hpp"
#include "callboard/mailbox/ordered/spmc.hpp"
#include "callboard/scheduling/flow/stage.hpp"

namespace callboard {

template <template <class> class Buffer = ReorderBuffer>
class SharedStage final : public Stage {
public:
    SharedStage(const Setup& setup, const Work& work, std::uint32_t window)
        : Stage(setup, work), ring_(window), in_order_(window) {}

    std::int64_t waiting() const override { return ring_.size(); }

    void put(std::uint32_t, std::int64_t serial, void* batch) override {
        if (batch == nullptr && pass_empty(serial)) return;
        [[maybe_unused]] const bool fits = ring_.try_push(batch);
        assert(fits);
        announce();
    }

    std::int64_t work(RowTotals& counts, double rows, std::uint32_t) override {
        std::int64_t rounds = 0;
        while (is_less(rounds, counts, rows)) {
            const auto more = work_on_some(counts);
            if (more == 0) break;
            rounds += more;
        }
        return rounds;
    }

private:
    static constexpr double worth_ns = 2000;  // of work, for a claim
    static constexpr std::int64_t most_at_once = 16;

    // Also while lanes are at work on earlier rounds: the buffer keeps the order. The thread delivers nothing else,
    // because no later round has come yet.
    bool pass_empty(std::int64_t serial) {
        if (depth == most_depth || !ring_.try_skip()) return false;
        ++depth;
        note_beginning(serial);
        in_order_.send(serial, nullptr, [this](void* ready) { deliver(ready); });
        --depth;
        return true;
    }

    // Several short rounds at once: each claim, and each hand-over in the reorder buffer, costs cache misses. At most
    // half of the waiting rounds, so that other lanes find some. Returns the number of rounds.
    std::int64_t work_on_some(RowTotals& counts) {
        void* rounds[most_at_once];
        std::int64_t first;
        // A lane that is too late goes elsewhere: with 64 lanes at short operators, 13 times the rate (simulated).
        const auto count = ring_.try_pop(rounds, at_once(), first, false);
        assert(count <= most_at_once && (count == 0 || first >= 0));
        for (std::int64_t i = 0; i < count; ++i) {
            note_beginning(first + i);
            void* output = work_.process(work_.self, first + i, &rounds[i], counts);
            in_order_.send(first + i, output, [this](void* ready) { deliver(ready); });
        }
        return count;
    }

    std::int64_t at_once() const {
        const double round_ns = cost_ns() * rows_per_unit();
        if (round_ns <= 0 || round_ns >= worth_ns) return 1;
        const auto most = static_cast<std::int64_t>(worth_ns / round_ns) + 1;
        assert(most > 0);
        const auto half = (ring_.size() + 1) / 2;
        return std::max<std::int64_t>(1, std::min({most, half, most_at_once}));
    }

    Spmc<void*> ring_;
    RoundsInOrder<Buffer> in_order_;
};

}  // namespace callboard
