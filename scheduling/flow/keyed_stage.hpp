// A stage with a state for each key: a hybrid queue, one lane at a time for a partition, and a reorder buffer.
//
// A shared stage before it divides its input, so that several lanes divide.
//
// Benchmarks make it with another queue (tests/bench/peers/partitioned_queue.hpp, shared_queue.hpp), or buffer.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>

#include "callboard/core/clock.hpp"
#include "callboard/mailbox/ordered/hybrid.hpp"
#include "callboard/mailbox/ordered/reorder.hpp"
#include "callboard/scheduling/flow/stage.hpp"

namespace callboard {

template <template <class> class Queue = HybridQueue, template <class> class Buffer = ReorderBuffer>
class KeyedStage final : public Stage {
public:
    // One of `sample_every` rounds is timed, sub-batch by sub-batch; 0: none.
    KeyedStage(const Setup& setup, const Work& work, Stage& divider, std::uint32_t partitions, std::uint32_t window,
               std::uint32_t sample_every)
        : Stage(setup, work), divider_(divider), queue_(partitions, window, setup.most_lanes), in_order_(window),
          sample_every_(sample_every), of_partitions_(std::make_unique<OfPartition[]>(partitions)) {
        divider.connect(*this, 0);
    }

    Stage& entrance() override { return divider_; }

    Figures figures_of(std::uint32_t partition) const { return {&of_partitions_[partition].figure, 0, 1}; }

    std::int64_t waiting() const override { return queue_.waiting(); }

    // Each batch is a Division.
    void put(std::uint32_t, std::int64_t serial, void* batch) override {
        if (batch == nullptr) return send(serial, nullptr);
        Division& division = *static_cast<Division*>(batch);
        division.serial = serial;
        division.is_timed = sample_every_ != 0 && is_sampled(serial, sample_every_);
        hand_out(division);
        announce();
    }

    std::int64_t work(RowTotals& counts, double rows, std::uint32_t lane) override {
        std::int64_t sub_batches = 0;
        const auto serve = [&](std::uint32_t, Piece& piece) { work_on(piece, counts), ++sub_batches; };
        while (is_less(sub_batches, counts, rows) && queue_.consume_one(serve, most_at_once, lane)) {}
        return sub_batches;
    }

private:
    static constexpr std::int64_t most_at_once = 16;  // sub-batches of a partition

    struct Piece {
        Division* division{nullptr};
        std::uint32_t sub_batch{0};
    };
    // The lane that works on the partition writes.
    struct alignas(cache_line) OfPartition {
        Figure figure;
    };

    // Once the last sub-batch is in the queue, another thread may gather and free the division.
    void hand_out(Division& division) {
        const auto count = division.count();
        division.begin();
        if (count == 0) gather(division);
        for (std::uint32_t i = 0; i < count; ++i) {
            [[maybe_unused]] const bool fits = queue_.add(division.sub_batch(i).partition, Piece{&division, i});
            assert(fits);
        }
    }

    void work_on(const Piece& piece, RowTotals& counts) {
        assert(piece.division != nullptr && piece.sub_batch < piece.division->count());
        Division& division = *piece.division;
        Figure& figure = of_partitions_[division.sub_batch(piece.sub_batch).partition].figure;
        note_beginning(division.serial);
        const bool timed = division.is_timed || (sample_every_ != 0 && !figure.has_sample());
        const std::int64_t begin = timed ? monotonic_ns() : 0;
        RowTotals rows;
        work_.process_sub_batch(work_.self, division, piece.sub_batch, rows);
        figure.count(rows);
        if (timed) figure.sample(rows, monotonic_ns() - begin);
        counts.taken += rows.taken;
        counts.given += rows.given;
        if (division.end_sub_batch()) gather(division);
    }

    void gather(Division& division) {
        const auto serial = division.serial;
        send(serial, work_.gather(work_.self, division));
    }

    void send(std::int64_t serial, void* output) {
        in_order_.send(serial, output, [this](void* ready) { deliver(ready); });
    }

    Stage& divider_;
    Queue<Piece> queue_;
    RoundsInOrder<Buffer> in_order_;
    const std::uint32_t sample_every_;
    const std::unique_ptr<OfPartition[]> of_partitions_;
};

}  // namespace callboard
