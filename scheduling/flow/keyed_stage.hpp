// A stage with a state for each key: a hybrid queue, one lane to a partition, and a reorder buffer.
//
// Its input comes divided. That is the work of a shared stage before it, so that several lanes divide.
#pragma once

#include "callboard/scheduling/flow/stage.hpp"
#include "callboard/scheduling/flow/structures.hpp"

namespace callboard {

class KeyedStage final : public Stage {
public:
    KeyedStage(const Site& site, const Work& work, Stage& divider, std::uint32_t partitions,
               std::uint32_t window, Reordering reordering, Partitioning partitioning)
        : Stage(site, work), divider_(divider),
          queue_(make_partitioned_queue<Piece>(partitioning, partitions, window)),
          in_order_(reordering, window) {
        divider.connect(*this, 0);
    }

    Stage& entrance() override { return divider_; }

    std::int64_t waiting() const override {
        return std::visit([](auto& queue) { return queue->waiting(); }, queue_);
    }

    // A batch is a Division.
    void put(std::uint32_t, std::int64_t serial, void* batch) override {
        if (batch == nullptr) {
            send(serial, nullptr);
        } else {
            Division& division = *static_cast<Division*>(batch);
            division.serial = serial;
            hand_out(division);
        }
        announce();
    }

    std::int64_t work(RowCounts& counts, double rows) override {
        std::int64_t shares = 0;
        const auto serve = [&](std::uint32_t, Piece& piece) { work_on(piece, counts), ++shares; };
        std::visit([&](auto& queue) {
            while (is_less(shares, counts, rows) && queue->consume_one(serve)) {}
        }, queue_);
        return shares;
    }

private:
    struct Piece {
        Division* division{nullptr};
        std::uint32_t share{0};
    };

    // Once the last share is in the queue, the division may be gathered, and gone.
    void hand_out(Division& division) {
        const auto count = division.count();
        division.begin();
        if (count == 0) gather(division);
        for (std::uint32_t i = 0; i < count; ++i) {
            [[maybe_unused]] const bool fits = std::visit(
                [&](auto& queue) { return queue->add(division.share(i).partition, Piece{&division, i}); }, queue_);
            assert(fits);
        }
    }

    void work_on(const Piece& piece, RowCounts& counts) {
        note_beginning(piece.division->serial);
        work_.share(work_.self, *piece.division, piece.share, counts);
        if (piece.division->end_share()) gather(*piece.division);
    }

    void gather(Division& division) {
        const auto serial = division.serial;
        send(serial, work_.gather(work_.self, division));
    }

    void send(std::int64_t serial, void* output) {
        in_order_.send(serial, output, [this](void* ready) { deliver(ready); });
    }

    Stage& divider_;
    AnyPartitionedQueue<Piece> queue_;
    RoundsInOrder in_order_;
};

}  // namespace callboard
